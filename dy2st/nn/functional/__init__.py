"""Functions of neural networks, without state: activations, convolutions, pooling, norms, losses."""

from dy2st.missing import missing_in
from dy2st.nn.functional import flash_attention as flash_attention
from dy2st.nn.functional.activation import (
    celu,
    elu,
    elu_,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_sigmoid,
    logsigmoid,
    maxout,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    swiglu,
    swish,
    tanh,
    tanh_,
    tanhshrink,
    thresholded_relu,
    thresholded_relu_,
)  # fmt: skip
from dy2st.nn.functional.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)  # fmt: skip
from dy2st.nn.functional.affine import bilinear, linear
from dy2st.nn.functional.attention import scaled_dot_product_attention
from dy2st.nn.functional.classification import (
    cross_entropy,
    label_smooth,
    margin_cross_entropy,
    nll_loss,
    softmax_with_cross_entropy,
)  # fmt: skip
from dy2st.nn.functional.conv import conv1d, conv1d_transpose, conv2d, conv2d_transpose, conv3d, conv3d_transpose
from dy2st.nn.functional.ctc import ctc_loss
from dy2st.nn.functional.distance import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_label_margin_loss,
    multi_label_soft_margin_loss,
    multi_margin_loss,
    npair_loss,
    pairwise_distance,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)  # fmt: skip
from dy2st.nn.functional.dropping import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)  # fmt: skip
from dy2st.nn.functional.experts import moe_permute, moe_unpermute
from dy2st.nn.functional.flash_attention import (
    flash_attention_v3_varlen,
    flash_attn_qkvpacked,
    flash_attn_unpadded,
    flash_attn_varlen_qkvpacked,
    flashmask_attention,
    sparse_attention,
)
from dy2st.nn.functional.fractional_pooling import fractional_max_pool2d, fractional_max_pool3d
from dy2st.nn.functional.lookup import embedding, gather_tree, one_hot
from dy2st.nn.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    dice_loss,
    gaussian_nll_loss,
    kl_div,
    l1_loss,
    log_loss,
    mse_loss,
    poisson_nll_loss,
    sigmoid_focal_loss,
    smooth_l1_loss,
    soft_margin_loss,
    square_error_cost,
)  # fmt: skip
from dy2st.nn.functional.many_classes import adaptive_log_softmax_with_loss, class_center_sample, hsigmoid_loss
from dy2st.nn.functional.norm import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)  # fmt: skip
from dy2st.nn.functional.padding import pad, zeropad2d
from dy2st.nn.functional.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)  # fmt: skip
from dy2st.nn.functional.resizing import interpolate, upsample
from dy2st.nn.functional.rnnt import rnnt_loss
from dy2st.nn.functional.sampling import affine_grid, grid_sample
from dy2st.nn.functional.shuffling import (
    channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
    sequence_mask,
    temporal_shift,
)
from dy2st.nn.functional.softmax_family import gumbel_softmax, log_softmax, softmax, softmax_
from dy2st.nn.functional.unfolding import fold, unfold
from dy2st.nn.functional.unpooling import max_unpool1d, max_unpool2d, max_unpool3d

__getattr__ = missing_in(__name__)
