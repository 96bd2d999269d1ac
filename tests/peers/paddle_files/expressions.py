"""Functions of tensors: operations, branches, loops, lists."""

from __future__ import annotations

import numpy as np
import paddle
from paddle.nn import functional as F

from tests.peers.paddle_files.cases import case, f32, spec


def resizing(x):
    return (
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, size=[7, 9], mode="bilinear"),
        F.interpolate(x, size=[7, 9], mode="bilinear", align_corners=True),
        F.interpolate(x, size=[5, 4], mode="bicubic"),
        F.interpolate(x, size=[x.shape[2] * 2, x.shape[3] + 1], mode="bilinear", align_mode=1),
        F.pixel_shuffle(paddle.concat([x, x], 1), 2),
    )


case([spec("x", [None, 2, None, None])], [f32(1, 2, 4, 5)], [f32(2, 2, 6, 3)])(resizing)


def pooling(x):
    mask = F.max_pool2d(x, 2, return_mask=True)
    return (
        F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, exclusive=False), F.avg_pool2d(x, 3, 2, 1),
        F.adaptive_max_pool2d(x, [2, 3]), F.max_pool2d(x, 2, padding="SAME"), *mask,
        F.adaptive_avg_pool2d(x, [3, 4]), F.max_pool3d(x.unsqueeze(2), [1, 2, 2]), F.avg_pool1d(x[:, :, 0], 2),
    )  # fmt: skip


case([spec("x", [None, 2, None, None])], [f32(1, 2, 7, 8)], [f32(2, 2, 6, 9)])(pooling)


def activations(x):
    return [
        F.gelu(x), F.gelu(x, approximate=True), F.sigmoid(x), paddle.tanh(x), F.silu(x), F.swish(x), F.mish(x),
        F.elu(x, 0.7), F.selu(x), F.celu(x, 0.5), F.leaky_relu(x, 0.1), F.hardshrink(x), F.softshrink(x),
        F.hardtanh(x), F.softplus(x), F.softsign(x), F.tanhshrink(x), F.thresholded_relu(x), F.log_sigmoid(x),
        F.relu6(x), F.log_softmax(x, -1), F.softmax(x, 0), F.hardswish(x), F.hardsigmoid(x),
    ]  # fmt: skip


case([spec("x", [None, None])], [f32(2, 6) * 4], [f32(3, 1)])(activations)


def arithmetic(x, y):
    return [
        x + y, x - y, x * y, y / x, x**2, x**y, y // x, y % x, paddle.maximum(x, y), paddle.minimum(x, y), -x, 2 - x,
        3 / x, paddle.exp(y), paddle.log(x), paddle.sqrt(x), paddle.rsqrt(x), paddle.abs(y), paddle.floor(y),
        paddle.ceil(y), paddle.round(y), paddle.sin(y), paddle.cos(y), paddle.erf(y), paddle.sign(y), paddle.square(y),
        paddle.reciprocal(x), paddle.log1p(x), paddle.clip(y, -0.5, 0.5), x.sum(0), y.mean(), y.max(1), y.min(),
        y.prod(1), paddle.logsumexp(y, 1), y.norm(), y.norm(p=1, axis=1), paddle.cumsum(y, 0), y.std(), x.matmul(y.t()),
        paddle.atan2(x, y), paddle.addmm(x.matmul(y.t()), x, y.t(), 0.5, 2.0), (x > y).any(), (x > y).all(0),
        paddle.expm1(y), paddle.log2(x), paddle.tan(y), paddle.lerp(x, y, 0.3), paddle.kron(x, y), paddle.outer(x, y),
        paddle.dot(x[0], y[0]), paddle.bmm(x.unsqueeze(1), y.unsqueeze(2)), paddle.einsum("ij,kj->ik", x, y),
        paddle.isnan(y), paddle.isinf(y), paddle.isfinite(y), paddle.stanh(y), paddle.trace(x), paddle.diag(x[0]),
    ]  # fmt: skip


case(
    [spec("x", [None, 3]), spec("y", [None, 3])], [abs(f32(4, 3)) + 0.5, f32(4, 3)], [abs(f32(1, 3)) + 0.1, f32(1, 3)]
)(arithmetic)


def shapes(x):
    n = paddle.shape(x)[0]
    a, b = paddle.split(x, 2, axis=1)
    c, d, e = paddle.split(x, [1, 2, -1], axis=1)
    y = x.reshape([n, -1])
    return [
        y, a, b, c, d, e, x.transpose([2, 0, 1]), paddle.concat([a, b], 2), paddle.stack([a, b], 1),
        x.unsqueeze([0, 3]), x.unsqueeze(1).squeeze(1), x[:, 1], x[:, ::2], x[:, -1:, 1:], x[:, ::-1],
        paddle.tile(x, [1, 2, 1]),
        paddle.expand(x[:, :1], [-1, 5, -1]), paddle.flip(x, [1]), paddle.roll(x, 1, 1),
        F.pad(x, [1, 2], data_format="NCL"),
        F.pad(x.unsqueeze(1), [1, 1, 0, 2], mode="reflect"), paddle.unbind(x, 1)[2], paddle.tril(x), paddle.triu(x, 1),
        x.flatten(1), x.flatten(), paddle.expand_as(x[:, :1], x), paddle.zeros_like(x), paddle.full_like(x, 3.0),
        paddle.zeros([n, 2]), paddle.arange(0, x.shape[2], 1, dtype="float32"), x.reshape([0, 2, 2, -1]), x[0, 0, 0],
        paddle.full([n, 2], 1.5), paddle.meshgrid(paddle.arange(2), paddle.arange(3))[0], paddle.linspace(0, 1, 5),
        paddle.shape(x), paddle.numel(x), paddle.chunk(x, 2, 1)[1], F.unfold(x.unsqueeze(1), 2), paddle.eye(3),
        paddle.broadcast_to(x[0], [2, 4, -1]), x.astype("float64"), x.unsqueeze(-1).expand([-1, -1, -1, 2]),
    ]  # fmt: skip


case([spec("x", [None, 4, None])], [f32(2, 4, 3)], [f32(3, 4, 5)])(shapes)


def indexing(x, i):
    top, at = paddle.topk(x, 2)
    order = paddle.argsort(x, 1, descending=True)
    y = x * 1
    y[:, 1:3] = 7.0
    z = paddle.scatter(x, i[:1], x[1:2])
    return [
        top, at, order, paddle.sort(x, 1), paddle.argmax(x, 1), paddle.argmin(x), paddle.gather(x, i), x[i],
        paddle.index_select(x, i, 0), paddle.take_along_axis(x, order, 1), paddle.where(x > 0, x, x * 0.1), y, z,
        paddle.gather_nd(x, i.unsqueeze(1)), paddle.nonzero(x > 0), paddle.masked_select(x, x > 0), F.one_hot(i, 5),
        x[x > 0.2], paddle.cast(i, "int32") + 1, i * 2, i // 2, i % 2, paddle.equal(i, 1), paddle.unique(i),
        paddle.logical_and(x > 0, x < 1), paddle.logical_not(x > 0), i > 0, paddle.put_along_axis(x, at, top * 0, 1),
        paddle.scatter_nd_add(x, i.unsqueeze(1)[:1], x[:1]), paddle.cumsum(i), paddle.bincount(i, minlength=5),
        paddle.searchsorted(paddle.sort(x[0]), x[1]), paddle.index_sample(x, at), paddle.mode(x, 1)[0],
        paddle.bitwise_and(i, i), paddle.any(x > 1), paddle.kthvalue(x, 2, 1)[0], paddle.increment(paddle.ones([1])),
        paddle.argmax(x, 1, keepdim=True, dtype="int32"), paddle.topk(x, 2, axis=0, largest=False)[0], i.max(), i.sum(),
    ]  # fmt: skip


case(
    [spec("x", [None, 5]), spec("i", [None], "int64")], [f32(3, 5), np.array([2, 0])], [f32(4, 5), np.array([3, 1, 1])]
)(indexing)


def branches(x):
    if x.sum() > 0:
        y = x * 2
        if x.max() > 4:
            y = y + 1
    else:
        y = x - 1
        z = y.mean()
        if z > -2:
            y = y * z
    if x.shape[0] > 3:
        y = y * 10
    return y


case([spec("x", [None, 3])], [f32(2, 3) - 4], [f32(2, 3) + 4], [f32(5, 3)])(branches)


def loops(x):
    i = paddle.zeros([1], "int64")
    total = x
    while total.abs().sum() < 50:
        total = total * 1.5 + 0.1
        i += 1
    return total, i


case([spec("x", [None, 3])], [f32(2, 3)], [f32(1, 3) * 0.1])(loops)


def turns(x):
    total = x * 0.5
    for k in range(x.shape[0]):
        if total.max() > 2:
            total = total - x[k]
        else:
            total = total + x[k] * (k + 1)
    return total


case([spec("x", [None, 3])], [f32(4, 3)], [f32(1, 3)])(turns)


def lists(x):
    found = []
    for k in range(x.shape[0]):
        found.append(paddle.tanh(x[k]))
    return paddle.stack(found) * 2


case([spec("x", [None, None, 3])], [f32(4, 2, 3)], [f32(2, 1, 3)])(lists)


def early(x, n):
    if n > 5:
        out = x * 100
    else:
        k = paddle.zeros([1], "int32")
        while k < n:
            x = x + 1
            k += 1
            if x.sum() < 5:
                continue
            x = x * 2
        out = x - 1
    return out


case(
    [spec("x", [None, 3]), spec("n", [1], "int32")],
    [f32(2, 3), np.array([2], "int32")],
    [f32(2, 3), np.array([7], "int32")],
)(early)


def detection(x, size, rois, each):
    boxes, scores = paddle.vision.ops.yolo_box(x, size, [10, 13, 16, 30], 2, 0.01, 32)
    prior, var = paddle.vision.ops.prior_box(x, F.interpolate(x, size=[96, 96]), [8.0], [16.0], [1.0, 2.0])
    aligned = paddle.vision.ops.roi_align(x, rois, each, 2)
    kept = paddle.vision.ops.nms(rois, 0.1)
    found, _, many = paddle.vision.ops.matrix_nms(
        boxes, scores.transpose([0, 2, 1]), 0.2, 0.1, 20, 5, background_label=-1
    )
    return boxes, scores, prior, var, aligned, kept, found, many


case([spec("x", [1, 14, 3, 3]), spec("size", [1, 2], "int32"), spec("rois", [None, 4]), spec("each", [None], "int32")],
      [f32(1, 14, 3, 3), np.array([[96, 96]], "int32"),
       np.array([[0, 0, 2, 2], [1, 1, 3, 2.5]], "float32"), np.array([2], "int32")])(detection)  # fmt: skip
