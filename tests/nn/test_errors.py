"""Wrong arguments of layers, their functions and initializers: the exception, and the text that says what is wrong."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.nn import functional as F
from dy2st.nn import initializer as I
from dy2st.nn.clip import ClipGradBase

V, M, C = paddle.arange(3.0), paddle.arange(6.0).reshape([2, 3]), paddle.arange(24.0).reshape([2, 3, 4])
IMAGE, KERNEL, INT = paddle.ones([1, 2, 4, 4]), paddle.ones([2, 2, 3, 3]), paddle.arange(3)
Case = tuple[Callable[[], Any], type[Exception], str]


def initial(initializer: Any, shape: list[int]) -> Any:
    return paddle.create_parameter(shape, "float32", default_initializer=initializer)


ACTIVATION: list[Case] = [
    (lambda: F.rrelu(V, 0.5, 0.1), ValueError, "rrelu: 0 <= lower <= upper <= 1 must hold, not lower=0.5, upper=0.1"),
    (lambda: F.celu(V, 0.0), ZeroDivisionError, "celu: alpha cannot be 0"),
    (lambda: F.selu(V, 0.5), ValueError, "selu: scale must be above 1, not 0.5"),
    (lambda: F.selu(V, 1.5, -1.0), ValueError, "selu: alpha must not be negative, not -1.0"),
    (lambda: F.gelu(V, "x"), ValueError, "gelu: approximate must be True, False, 'tanh' or 'none', not 'x'"),
    (lambda: F.softshrink(V, -1.0), ValueError, "softshrink: the threshold must not be negative, not -1.0"),
    (lambda: F.maxout(IMAGE, 3), ValueError, "maxout: 2 channels do not divide into groups of 3"),
    (lambda: F.glu(V), ValueError, "glu: an extent of 3 along axis 0 has no halves"),
    (lambda: F.prelu(C, V[:2]), ValueError, "prelu: 2 weights for a tensor of 3 channels (data_format NCHW)"),
    (lambda: F.gumbel_softmax(V, 0.0), ValueError, "gumbel_softmax: the temperature must be positive, not 0.0"),
    (lambda: nn.Softmax2D()(V), ValueError, "Softmax2D needs a tensor of 3 or 4 axes, not 1"),
]  # fmt: skip
WINDOWS: list[Case] = [
    (lambda: F.adaptive_avg_pool2d(V, 2), ValueError, "adaptive_avg_pool2d needs a tensor of 4 axes, not of shape [3]"),
    (lambda: F.adaptive_avg_pool2d(IMAGE, [1, 2, 3]), ValueError,
     "output_size needs an int or 2 of them, not [1, 2, 3]"),
    (lambda: F.max_pool2d(IMAGE, 2, return_mask=True, data_format="NHWC"), ValueError,
     "return_mask=True needs data_format with channels as axis 1, not 'NHWC'"),
    (lambda: F.avg_pool2d(IMAGE, 2, divisor_override=0), ValueError, "avg_pool2d: divisor_override cannot be 0"),
    (lambda: F.lp_pool2d(IMAGE, 0.0, 2), ValueError, "lp_pool2d: norm_type must be positive, not 0.0"),
    (lambda: F.max_pool2d(V, 2), ValueError, "max_pool2d needs a tensor of 4 axes, not of shape [3]"),
    (lambda: F.conv2d(IMAGE, KERNEL, data_format="X"), ValueError,
     "conv2d: data_format must be 'NCHW' or 'NHWC', not 'X'"),
    (lambda: F.conv2d(IMAGE, KERNEL, padding=[1, 2, 3]), ValueError, "padding [1, 2, 3] does not fit 2 spatial axes"),
    (lambda: F.conv2d(IMAGE, KERNEL, stride=[1, 2, 3]), ValueError, "stride needs an int or 2 of them, not [1, 2, 3]"),
    (lambda: F.conv2d(IMAGE, KERNEL, padding="X"), ValueError, "padding must be 'SAME', 'VALID' or numbers, not 'X'"),
    (lambda: F.conv2d(IMAGE, KERNEL, padding=[[1, 1], [0, 0], [1, 1], [1, 1]]), ValueError,
     "conv2d: batch and channels cannot be padded"),
    (lambda: F.conv2d_transpose(V, KERNEL), ValueError, "conv2d_transpose needs an input and filters of 4 axes"),
    (lambda: F.conv2d_transpose(IMAGE, paddle.ones([3, 2, 3, 3])), ValueError,
     "conv2d_transpose: the input has 2 channels, the filters [3, 2, 3, 3] take 3"),
    (lambda: F.conv2d_transpose(IMAGE, KERNEL, output_padding=1), ValueError,
     "conv2d_transpose: output_padding [1, 1] must be below the stride or the dilation"),
    (lambda: F.conv2d_transpose(IMAGE, KERNEL, stride=2, output_padding=1, output_size=[9, 9]), ValueError,
     "conv2d_transpose: give output_size or output_padding, not both"),
    (lambda: F.conv2d_transpose(IMAGE, KERNEL, output_size=[90, 90]), ValueError,
     "conv2d_transpose: output_size [90, 90] cannot be: an extent must be from 6 to 6"),
    (lambda: F.unfold(V, 2), ValueError, "unfold needs images, tensors of 4 axes, not the shape [3]"),
    (lambda: F.fold(V, 4, 2), ValueError, "fold needs columns, a tensor of 3 axes, not the shape [3]"),
    (lambda: F.fold(C, 4, 2), ValueError, "fold: columns of 3 elements are not made of windows of 2 x 2"),
    (lambda: F.fold(paddle.ones([1, 4, 2]), 4, 2), ValueError,
     "fold: 2 columns, but images of [4, 4] have 3 x 3 windows"),
    (lambda: F.pad(M, [1, 1, 1], mode="constant"), ValueError, "pad: 3 widths do not fit a tensor of 2 axes"),
    (lambda: F.pad(IMAGE, [5, 5, 1, 1], mode="reflect"), ValueError,
     "pad: mode 'reflect' can add from 0 to 3 elements to an axis of 4, not 5"),
    (lambda: F.pad(IMAGE, [1, 1], data_format="X"), ValueError, "pad: data_format must be one of"),
    (lambda: nn.Pad2D(1)(V), ValueError, "Pad2D needs a tensor of 4 axes, not the shape [3]"),
    (lambda: nn.Pad2D([1, 1, 1])(IMAGE), ValueError, "Pad2D: padding needs 4 numbers, not 3"),
]  # fmt: skip
NORM: list[Case] = [
    (lambda: F.group_norm(C, 2), ValueError, "group_norm: 3 channels do not divide into 2 groups"),
    (lambda: F.instance_norm(V), ValueError, "instance_norm needs [batch, channels, ...], not a tensor of shape [3]"),
    (lambda: F.local_response_norm(V, 2), ValueError,
     "local_response_norm needs [batch, channels, ...], not a tensor of shape [3]"),
    (lambda: F.group_norm(C, 3, data_format="X"), ValueError, "group_norm: data_format 'X' is not known; use 'NCHW'"),
    (lambda: F.group_norm(V, 1), ValueError, "group_norm needs [batch, channels, ...], not a tensor of shape [3]"),
]  # fmt: skip
LOSSES: list[Case] = [
    (lambda: F.cross_entropy(M, INT[:2], label_smoothing=2.0), ValueError,
     "cross_entropy: label_smoothing must be between 0 and 1, not 2.0"),
    (lambda: F.cross_entropy(M, M, soft_label=True, ignore_index=1), ValueError,
     "cross_entropy: ignore_index has no meaning with soft_label=True"),
    (lambda: F.cross_entropy(paddle.to_tensor(1.0), INT), ValueError,
     "cross_entropy: the input needs an axis of classes"),
    (lambda: F.cross_entropy(C, INT), ValueError,
     "cross_entropy: labels of shape [3] do not fit an input of shape [2, 3, 4]"),
    (lambda: F.nll_loss(M, paddle.zeros([2, 2], "int64")), ValueError,
     "nll_loss: an input of shape [2, 3] and labels of shape [2, 2] do not fit"),
    (lambda: F.label_smooth(M, epsilon=2.0), ValueError, "label_smooth: epsilon must be between 0 and 1, not 2.0"),
    (lambda: F.cosine_embedding_loss(M, M, paddle.ones([2]), 3.0), ValueError,
     "cosine_embedding_loss: margin must be between -1 and 1, not 3.0"),
    (lambda: F.triplet_margin_with_distance_loss(M, M, M, margin=-1.0), ValueError,
     "triplet_margin_with_distance_loss: margin must not be negative, not -1.0"),
    (lambda: F.poisson_nll_loss(V, V, epsilon=0.0), ValueError, "poisson_nll_loss: epsilon must be positive, not 0.0"),
    (lambda: F.dice_loss(M, INT), ValueError, "dice_loss: labels of shape [3] need the input's axes and 1 as the last"),
    (lambda: F.mse_loss(V, V, "x"), ValueError, "mse_loss: reduction must be 'mean', 'sum' or 'none', not 'x'"),
    (lambda: F.embedding(INT, M, scale_grad_by_freq=True), NotImplementedError,
     "embedding: scale_grad_by_freq=True is not supported"),
    (lambda: F.embedding(INT, M, padding_idx=9), ValueError,
     "embedding: padding_idx 9 is outside of a table of 2 rows"),
]  # fmt: skip
RESIZING: list[Case] = [
    (lambda: F.interpolate(IMAGE, [2, 2], mode="x"), ValueError, "interpolate: mode must be one of"),
    (lambda: F.interpolate(V, [2], mode="linear"), ValueError,
     "interpolate: mode 'linear' does not go with a tensor of shape [3]"),
    (lambda: F.interpolate(IMAGE, [2, 2], mode="nearest", align_corners=True), ValueError,
     "interpolate: align_corners has no meaning in mode 'nearest'"),
    (lambda: F.interpolate(IMAGE, [2, 2], mode="bilinear", align_mode=2), ValueError,
     "interpolate: align_mode must be 0 or 1, not 2"),
    (lambda: F.interpolate(IMAGE), ValueError, "interpolate: give one of size and scale_factor"),
    (lambda: F.interpolate(IMAGE, scale_factor=-1.0), ValueError,
     "interpolate: scale_factor must be positive, not -1.0"),
    (lambda: F.interpolate(IMAGE, [1, 2, 3]), ValueError, "size needs a number or 2 of them, not [1, 2, 3]"),
    (lambda: F.interpolate(IMAGE, [0, 2]), ValueError, "interpolate: an axis of 4 elements cannot get 0"),
]  # fmt: skip
INITIALIZERS: list[Case] = [
    (lambda: initial(I.Assign([1.0]), [2]), ValueError, "Assign: values of shape [1] for a parameter of shape [2]"),
    (lambda: I.Constant("x"), TypeError, "Constant: value must be a number, not str"),  # type: ignore[arg-type]
    (lambda: I.calculate_gain("x"), ValueError, "no gain is known for the nonlinearity 'x'; known: "),
    (lambda: I.KaimingNormal(mode="x"), ValueError, "KaimingNormal: mode must be 'fan_in' or 'fan_out', not 'x'"),
    (lambda: initial(I.Orthogonal(), [2]), ValueError,
     "Orthogonal needs a parameter of at least 2 axes, not of shape [2]"),
    (lambda: initial(I.Dirac(), [2]), ValueError,
     "Dirac needs a convolution's weight of 3 to 5 axes, not of shape [2]"),
    (lambda: initial(I.Dirac(2), [3, 3, 3]), ValueError, "Dirac: 3 filters do not divide into 2 groups"),
    (lambda: initial(I.Bilinear(), [2]), ValueError, "Bilinear needs a weight of shape [c, c, k, k], not [2]"),
    (lambda: I.TruncatedNormal(a=2.0, b=1.0), ValueError, "TruncatedNormal: a must be below b, not 2.0 and 1.0"),
    (lambda: ClipGradBase()([(V, V)]), NotImplementedError, "ClipGradBase does not say how it clips: define `clipped`"),
    (lambda: setattr(nn.Linear(1, 1).weight, "trainable", 1), ValueError, "trainable must be True or False, not 1"),
]  # fmt: skip
ALL = [*ACTIVATION, *WINDOWS, *NORM, *LOSSES, *RESIZING, *INITIALIZERS]


@pytest.mark.parametrize(("call", "kind", "text"), ALL, ids=[case[2] for case in ALL])
def test_a_wrong_argument_is_named(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()
