"""Functions of tensors: the operations that models have more rarely. What is drawn has one possible value."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F

from tests.peers.paddle_files.cases import case, spec

R = np.random.default_rng(1)


def f32(*shape: int) -> Any:
    return R.standard_normal(shape).astype("float32").round(2)


def inside(x, y):
    return [
        paddle.acos(x), paddle.asin(x), paddle.atan(x), paddle.sinh(x), paddle.cosh(x), paddle.asinh(x),
        paddle.acosh(y), paddle.atanh(x), paddle.erfinv(x), paddle.digamma(y), paddle.lgamma(y), paddle.log10(y),
        paddle.trunc(y), paddle.logit(paddle.abs(x), 1e-3), paddle.fmax(x, y), paddle.fmin(x, y), paddle.amax(y, 1),
        paddle.amin(y, [0, 1]), paddle.cumprod(y, 1), paddle.cross(x, y, axis=1), paddle.mv(x, y[0]),
        paddle.add_n([x, y, x]), F.normalize(x), F.maxout(paddle.concat([x, y], 1).unsqueeze([2, 3]), 3),
    ]  # fmt: skip


case([spec("x", [None, 3]), spec("y", [None, 3])], [f32(4, 3).clip(-0.9, 0.9), abs(f32(4, 3)) + 1.1])(inside)


def comparing(x, y):
    return [
        x >= y, x <= y, x != y, paddle.equal_all(x, y), paddle.logical_or(x > 0, y > 0),
        paddle.logical_xor(x > 0, y > 0),
    ]  # fmt: skip


case([spec("x", [None]), spec("y", [None])], [np.array([1.0, -2, 3], "float32"), np.array([1.0, 2, -3], "float32")],
     [np.array([1.0, 2], "float32"), np.array([1.0, 2], "float32")])(comparing)  # fmt: skip


def bits(i, b):
    five = paddle.full_like(i, 5)
    return i & five, i | five, i ^ five, ~i, ~b, b ^ (i > 0), b | (i > 2)


case([spec("i", [None], "int64"), spec("b", [None], "bool")],
     [np.array([0, 3, -5, 12]), np.array([True, False, True, False])])(bits)  # fmt: skip


def of_complex(x, y):
    z = paddle.complex(x, y)
    return paddle.real(z * z), paddle.imag(z * z), paddle.imag(paddle.conj(z)), paddle.abs(z)


case([spec("x", [None, 2]), spec("y", [None, 2])], [f32(3, 2), f32(3, 2)])(of_complex)


def drawn(x):
    n = paddle.shape(x)[0]
    return [
        paddle.bernoulli((x > 0).astype("float32")), paddle.normal(2.5, 0.0, [3, 2]),
        paddle.uniform([2, 3], min=0.5, max=0.5),
        paddle.uniform([n, 2], min=-1.0, max=-1.0), paddle.normal(1.5, 0.0, [n]),
    ]  # fmt: skip


case([spec("x", [None, 2])], [f32(3, 2)])(drawn)


def stretching(x):
    y, z = x[:, :, 0], x.unsqueeze(2)
    return [
        F.interpolate(y, size=[7], mode="linear", data_format="NCW"), F.pixel_unshuffle(x, 2),
        F.interpolate(z, size=[2, 5, 3], mode="trilinear", data_format="NCDHW"),
        F.affine_grid(x[:, 0, :2, :3] * 0.5, [1, 1, 3, 4]),
        F.affine_grid(x[:, 0, :2, :3] * 0.5, [1, 1, 3, 4], align_corners=False),
    ]  # fmt: skip


case([spec("x", [1, 2, 4, 6])], [f32(1, 2, 4, 6)])(stretching)


def choosing(x, i):
    y, z = x * 1, x * 2
    y[:, 1] = x[:, 0]
    z[i[0], :] = x[1]
    return [
        y, z, paddle.index_add(x, i, 0, x[:2] * 10), paddle.index_put(x, [i, i], x[0, :2]),
        paddle.index_put(x, [i], x[:2], accumulate=True), paddle.masked_fill(x, x > 0, -1.0),
        paddle.repeat_interleave(x, 2, 1), paddle.unstack(x, axis=1, num=3)[1], paddle.diagonal(x, 1),
        paddle.diagonal(x.unsqueeze(0), 0, 1, 2), F.label_smooth(x, epsilon=0.2),
        x.unbind(1)[2],
    ]  # fmt: skip


case([spec("x", [3, 3]), spec("i", [2], "int64")], [f32(3, 3), np.array([2, 0])])(choosing)


def boxes(prior, variance, target, encoded):
    ops = paddle.vision.ops
    return [
        ops.box_coder(prior, variance, target, "encode_center_size"),
        ops.box_coder(prior, [0.1, 0.1, 0.2, 0.2], target, "encode_center_size", box_normalized=False),
        ops.box_coder(prior, variance, encoded, "decode_center_size"),
        ops.box_coder(prior, [0.1, 0.1, 0.2, 0.2], encoded, "decode_center_size", False, axis=0),
    ]  # fmt: skip


_CORNERS = np.array([[0, 0, 2, 3], [1, 1, 4, 2.5], [0.5, 0, 1, 1]], "float32")
case([spec("prior", [3, 4]), spec("variance", [3, 4]), spec("target", [None, 4]), spec("encoded", [None, 3, 4])],
     [_CORNERS,
      np.full((3, 4), 0.1, "float32") + _CORNERS * 0.01, _CORNERS[:2] + 0.25, f32(2, 3, 4)])(boxes)  # fmt: skip


def suppressing(corners, scores):
    settings = {
        "score_threshold": 0.2, "nms_top_k": 4, "keep_top_k": 5, "nms_threshold": 0.3, "normalized": True,
        "nms_eta": 1.0, "background_label": 0,
    }  # fmt: skip
    soft = paddle.vision.ops.matrix_nms(corners, scores, 0.2, 0.1, 4, 5, return_index=True, return_rois_num=True)
    if paddle.framework.in_dynamic_or_pir_mode():
        return *soft, *paddle._C_ops.multiclass_nms3(corners, scores, None, *settings.values())
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper("multiclass_nms3")
    kinds = {"Out": "float32", "Index": "int32", "NmsRoisNum": "int32"}
    made = {slot: helper.create_variable_for_type_inference(dtype) for slot, dtype in kinds.items()}
    helper.append_op(type="multiclass_nms3", inputs={"BBoxes": corners, "Scores": scores}, outputs=made, attrs=settings)
    return *soft, *made.values()


def _crowd(images):
    low = R.uniform(0, 4, (images, 7, 2))
    found = np.concatenate([low, low + R.uniform(1, 3, (images, 7, 2))], 2).astype("float32").round(2)
    return [found, R.uniform(0, 1, (images, 3, 7)).astype("float32").round(3)]


case([spec("corners", [None, 7, 4]), spec("scores", [None, 3, 7])], _crowd(1), _crowd(3))(suppressing)


@case([spec("x", [None, 2, 5, 6]), spec("offset", [None, 18, 5, 6]), spec("mask", [None, 9, 5, 6])],
      [f32(2, 2, 5, 6), f32(2, 18, 5, 6) * 0.5, abs(f32(2, 9, 5, 6))])  # fmt: skip
class Deformed(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = paddle.vision.ops.DeformConv2D(2, 3, 3, padding=1)
        self.each = nn.Conv2DTranspose(2, 2, 3, 2, 1, groups=2)
        self.volume = nn.Conv3DTranspose(2, 3, [1, 2, 2], [1, 2, 2])

    def forward(self, x, offset, mask):
        return self.conv(x, offset), self.conv(x, offset, mask), self.each(x), self.volume(x.unsqueeze(2))


def errors_of(x, y):
    p, t = F.sigmoid(x), (y > 0).astype("float32")
    return F.binary_cross_entropy(p, t), F.binary_cross_entropy(p, t, reduction="none"), F.log_loss(p, t)


case([spec("x", [None, 1]), spec("y", [None, 1])], [f32(4, 1), f32(4, 1)])(errors_of)


def attending(q, k, v):
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True)


case([spec(name, [None, None, 2, 4]) for name in "qkv"], [f32(2, 5, 2, 4), f32(2, 5, 2, 4), f32(2, 5, 2, 4)])(attending)


@case([spec("x", [None, None, 4])], [f32(2, 3, 4)])
class RootMeanSquare(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.scale = self.create_parameter([4], default_initializer=nn.initializer.Uniform())

    def forward(self, x):
        return paddle.incubate.nn.functional.fused_rms_norm(x, self.scale, None, 1e-6, 2)[0]


def kept(x, i):
    array = paddle.tensor.create_array("float32")
    paddle.tensor.array_write(x, paddle.zeros([1], "int64"), array)
    paddle.tensor.array_write(x * 3, paddle.ones([1], "int64"), array)
    return [
        paddle.tensor.array_read(array, paddle.ones([1], "int64")), F.pad(x, [1, 0, 0, 2], value=0.5),
        paddle.repeat_interleave(x, i, 0),
    ]  # fmt: skip


case([spec("x", [2, 3]), spec("i", [2], "int32")], [f32(2, 3), np.array([2, 3], "int32")])(kept)


def taken(x):
    found = []
    for k in range(x.shape[0]):
        found.append(x[k] * 2)
    n = len(found) if isinstance(found, list) else paddle.tensor.array_length(found)
    return found[0] * 2, n


case([spec("x", [None, 3])], [f32(4, 3)], [f32(1, 3)])(taken)
