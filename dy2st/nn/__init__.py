"""Layers and what they are built of."""

from importlib import import_module
from typing import Any

from dy2st.missing import missing_in
from dy2st.nn import functional, initializer, utils
from dy2st.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Maxout,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Silu,
    Softmax,
    Softmax2D,
    Softplus,
    Softshrink,
    Softsign,
    Swish,
    Tanh,
    Tanhshrink,
    ThresholdedReLU,
)  # fmt: skip
from dy2st.nn.layers.attention import MultiHeadAttention
from dy2st.nn.layers.containers import LayerDict, LayerList, ParameterDict, ParameterList, Sequential
from dy2st.nn.layers.conv import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from dy2st.nn.layers.decoding import BeamSearchDecoder, Decoder, dynamic_decode
from dy2st.nn.layers.dropout import AlphaDropout, Dropout, Dropout2D, Dropout3D, FeatureAlphaDropout
from dy2st.nn.layers.linear import Bilinear, Embedding, Linear
from dy2st.nn.layers.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    PairwiseDistance,
    PoissonNLLLoss,
    RNNTLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)  # fmt: skip
from dy2st.nn.layers.many_classes import AdaptiveLogSoftmaxWithLoss, HSigmoidLoss
from dy2st.nn.layers.norm import (
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    BatchNorm3D,
    GroupNorm,
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
    SyncBatchNorm,
)  # fmt: skip
from dy2st.nn.layers.padding import (
    CircularPad1D,
    CircularPad2D,
    CircularPad3D,
    ConstantPad1D,
    ConstantPad2D,
    ConstantPad3D,
    Pad1D,
    Pad2D,
    Pad3D,
    ReflectionPad1D,
    ReflectionPad2D,
    ReflectionPad3D,
    ReplicationPad1D,
    ReplicationPad2D,
    ReplicationPad3D,
    ZeroPad1D,
    ZeroPad2D,
    ZeroPad3D,
)  # fmt: skip
from dy2st.nn.layers.pooling import (
    AdaptiveAvgPool1D,
    AdaptiveAvgPool2D,
    AdaptiveAvgPool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    FractionalMaxPool2D,
    FractionalMaxPool3D,
    LPPool1D,
    LPPool2D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    MaxUnPool1D,
    MaxUnPool2D,
    MaxUnPool3D,
)  # fmt: skip
from dy2st.nn.layers.rnn import GRU, LSTM, RNN, BiRNN, SimpleRNN
from dy2st.nn.layers.rnn_cells import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from dy2st.nn.layers.shaping import (
    ChannelShuffle,
    Flatten,
    Fold,
    Identity,
    PixelShuffle,
    PixelUnshuffle,
    Unflatten,
    Unfold,
    Upsample,
    UpsamplingBilinear2D,
    UpsamplingNearest2D,
)  # fmt: skip
from dy2st.nn.layers.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from dy2st.nn.param_attr import ParamAttr
from dy2st.nn.reparametrize import SpectralNorm
from dy2st.runtime.eager.parameter import Parameter

Module, ModuleList, ModuleDict = Layer, LayerList, LayerDict
for _stem in ("AdaptiveMaxPool", "CircularPad", "ConstantPad", "Conv", "ReflectionPad", "ReplicationPad"):
    globals().update({f"{_stem}{_rank}d": globals()[f"{_stem}{_rank}D"] for _rank in (1, 2, 3)})
LPPool1d, LPPool2d = LPPool1D, LPPool2D

_missing = missing_in(__name__)


def __getattr__(name: str) -> Any:
    if name == "quant":  # loaded on first use
        return import_module("dy2st.nn.quant")
    return _missing(name)
