"""Products, convolutions, pooling, normalizations, recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st import tensor as T
from dy2st.functions.linalg.einsum import einsum
from dy2st.linalg import det
from dy2st.nn import functional as F
from dy2st.onnx.reading.rules.elementwise import like
from dy2st.onnx.reading.runner import Node, operator


@operator("MatMul")
def _matmul(node: Node, x: Any, y: Any) -> Any:
    return like(T.matmul(x, y), x)


@operator("Gemm")
def _gemm(node: Node, a: Any, b: Any, c: Any = None) -> Any:
    made = T.matmul(a, b, bool(node.get("transA", 0)), bool(node.get("transB", 0))) * node.get("alpha", 1.0)
    return made if c is None else made + c * node.get("beta", 1.0)


@operator("Einsum")
def _einsum(node: Node, *xs: Any) -> Any:
    return einsum(node.get("equation").replace(" ", ""), *xs)


@operator("Softmax", "LogSoftmax")
def _softmax(node: Node, x: Any) -> Any:
    soft = F.softmax if node.proto.op_type == "Softmax" else F.log_softmax
    if node.opset >= 13:
        return soft(x, axis=node.get("axis", -1))
    axis = node.get("axis", 1) % x.ndim
    lead = 1
    for extent in x.shape[:axis]:
        lead = lead * extent
    return T.reshape(soft(T.reshape(x, [lead, -1]), axis=1), x.shape)


def _windows(node: Node, x: Any, kernel: Sequence[int]) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Return strides, dilations and the padding of each axis."""
    n = len(kernel)
    strides, dilations = node.get("strides") or [1] * n, node.get("dilations") or [1] * n
    pads, auto = node.get("pads") or [0] * 2 * n, node.get("auto_pad", "NOTSET")
    pairs = list(zip(pads[:n], pads[n:], strict=True))
    if auto.startswith("SAME"):
        pairs = []
        for extent, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
            whole = max((-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent, 0)
            low = whole // 2 if auto == "SAME_UPPER" else whole - whole // 2
            pairs.append((low, whole - low))
    elif auto == "VALID":
        pairs = [(0, 0)] * n
    return strides, dilations, pairs


def _around(x: Any, pairs: Sequence[tuple[int, int]], value: float) -> Any:
    """Pad the spatial axes by hand."""
    for axis, widths in enumerate(pairs, 2):
        parts = []
        for width in widths:
            shape = list(x.shape)
            shape[axis] = width
            parts.append(T.full(shape, value, x.dtype))
        x = T.concat([parts[0], x, parts[1]], axis) if any(widths) else x
    return x


@operator("Conv")
def _conv(node: Node, x: Any, w: Any, b: Any = None) -> Any:
    strides, dilations, pairs = _windows(node, x, w.shape[2:])
    conv = (F.conv1d, F.conv2d, F.conv3d)[w.ndim - 3]
    made = conv(_around(x, pairs, 0.0), w, None, strides, 0, dilations, node.get("group", 1))
    return made if b is None else made + T.reshape(b, [1, -1] + [1] * (w.ndim - 2))


@operator("ConvTranspose")
def _conv_transpose(node: Node, x: Any, w: Any, b: Any = None) -> Any:
    kernel, n = list(w.shape[2:]), w.ndim - 2
    strides, dilations, pairs = _windows(node, x, kernel)
    more = node.get("output_padding") or [0] * n
    conv = (F.conv1d_transpose, F.conv2d_transpose, F.conv3d_transpose)[n - 1]
    made = conv(x, w, None, strides, 0, 0, groups=node.get("group", 1), dilation=dilations)
    wanted = node.get("output_shape")
    if wanted is None and node.get("auto_pad", "NOTSET").startswith("SAME"):
        wanted = [extent * s for extent, s in zip(x.shape[2:], strides, strict=True)]
    for i in range(n):
        whole = made.shape[2 + i] + more[i]
        low, high = pairs[i]
        if wanted is not None:
            cut = max(whole - wanted[-n:][i], 0)
            low = cut // 2 if node.get("auto_pad") != "SAME_LOWER" else cut - cut // 2
            high = cut - low
        target = whole - low - high if wanted is None else wanted[-n:][i]
        lacking = max(low + target - made.shape[2 + i], 0)
        made = _around(made, [(0, 0)] * i + [(0, lacking)] + [(0, 0)] * (n - 1 - i), 0.0)
        made = T.slice(made, [2 + i], [low], [low + target])
    return made if b is None else made + T.reshape(b, [1, -1] + [1] * n)


def _window_parts(node: Node, x: Any, fill: float) -> tuple[list[Any], list[Any], Any]:
    """Return the elements of all windows, place by place of the kernel, the same of where there are elements, and x."""
    kernel = node.get("kernel_shape")
    strides, dilations, pairs = _windows(node, x, kernel)
    counts, widths = [], []
    for extent, k, s, d, (low, high) in zip(x.shape[2:], kernel, strides, dilations, pairs, strict=True):
        span = (k - 1) * d + 1
        rest = extent + low + high - span
        count = rest // s + 1
        if node.get("ceil_mode", 0):
            count = -(-rest // s) + 1
            count -= (count - 1) * s >= extent + low
        counts.append(count)
        widths.append((low, max((count - 1) * s + span - extent - low, 0)))
    real = _around(T.ones_like(x[:1, :1]), pairs, 1.0 if node.get("count_include_pad", 0) else 0.0)
    beyond = [(0, w[1] - p[1] if w[1] > p[1] else 0) for w, p in zip(widths, pairs, strict=True)]
    real, around = _around(real, beyond, 0.0), _around(x, widths, fill)
    places: list[list[int]] = [[]]
    for k in kernel:
        places = [[*place, i] for place in places for i in range(k)]
    parts = []
    for place in places:
        key = [slice(i * d, i * d + (c - 1) * s + 1, s)
               for i, d, s, c in zip(place, dilations, strides, counts, strict=True)]  # fmt: skip
        parts.append((slice(None), slice(None), *key))
    return [around[key] for key in parts], [real[key] for key in parts], x


@operator("AveragePool")
def _average_pool(node: Node, x: Any) -> Any:
    values, real, _ = _window_parts(node, x, 0.0)
    total, count = values[0], real[0]
    for v, r in zip(values[1:], real[1:], strict=True):
        total, count = total + v, count + r
    return total / count


@operator("LpPool")
def _lp_pool(node: Node, x: Any) -> Any:
    values, _, _ = _window_parts(node, x, 0.0)
    p = node.get("p", 2)
    total = T.abs(values[0]) ** p
    for v in values[1:]:
        total = total + T.abs(v) ** p
    return total ** (1.0 / p)


@operator("MaxPool")
def _max_pool(node: Node, x: Any) -> Any:
    low = float("-inf") if x.dtype.is_floating else {"int8": -128}.get(x.dtype.name, 0)
    values, _, _ = _window_parts(node, x, low)
    best = values[0]
    for v in values[1:]:
        best = T.maximum(best, v)
    if node.outputs == 1:
        return best
    n = x.ndim - 2
    order = list(range(x.ndim)) if not node.get("storage_order", 0) else [0, 1, *range(2 + n - 1, 1, -1)]
    numbers = T.reshape(T.arange(x.size), [x.shape[a] for a in order])
    numbers = T.transpose(numbers, order)
    at, _, _ = _window_parts(node, numbers, 0)
    found = at[-1]
    for v, number in zip(values[::-1], at[::-1], strict=True):
        found = T.where(v == best, number, found)
    return best, found


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(node: Node, x: Any) -> Any:
    over = list(range(2, x.ndim))
    if node.proto.op_type == "GlobalLpPool":
        p = node.get("p", 2)
        return T.sum(T.abs(x) ** p, over, keepdim=True) ** (1.0 / p)
    return (T.mean if node.proto.op_type == "GlobalAveragePool" else T.max)(x, over, keepdim=True)


def _per_channel(v: Any, rank: int) -> Any:
    return T.reshape(v, [1, -1] + [1] * (rank - 2))


@operator("BatchNormalization")
def _batch_norm(node: Node, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    training = bool(node.get("training_mode", 0))
    used_mean, used_variance = mean, variance
    if training:
        over = [0, *range(2, x.ndim)]
        used_mean = T.mean(x, over)
        used_variance = T.mean((x - _per_channel(used_mean, x.ndim)) ** 2, over)
    slope = scale / T.sqrt(used_variance + node.get("epsilon", 1e-5))
    made = (x - _per_channel(used_mean, x.ndim)) * _per_channel(slope, x.ndim) + _per_channel(bias, x.ndim)
    made = like(made, x)
    if not training:
        return made
    old = node.get("momentum", 0.9)
    return made, mean * old + used_mean * (1 - old), variance * old + used_variance * (1 - old)


@operator("InstanceNormalization")
def _instance_norm(node: Node, x: Any, scale: Any, bias: Any) -> Any:
    over = list(range(2, x.ndim))
    off = x - T.mean(x, over, keepdim=True)
    made = off / T.sqrt(T.mean(off * off, over, keepdim=True) + node.get("epsilon", 1e-5))
    return made * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)


@operator("LayerNormalization")
def _layer_norm(node: Node, x: Any, scale: Any, bias: Any = None) -> Any:
    over = list(range(node.get("axis", -1) % x.ndim, x.ndim))
    wide = T.cast(x, "float32") if x.dtype.name == "float16" else x
    mean = T.mean(wide, over, keepdim=True)
    off = wide - mean
    slope = 1 / T.sqrt(T.mean(off * off, over, keepdim=True) + node.get("epsilon", 1e-5))
    made = like(off * slope, x) * scale
    made = made if bias is None else made + bias
    return (made, mean, slope)[: node.outputs] if node.outputs > 1 else made


@operator("LpNormalization")
def _lp_norm(node: Node, x: Any) -> Any:
    axis = node.get("axis", -1)
    size = T.sum(T.abs(x), axis, keepdim=True) if node.get("p", 2) == 1 else T.sqrt(T.sum(x * x, axis, keepdim=True))
    return x / T.where(size == 0, T.ones_like(size), size)


@operator("MeanVarianceNormalization")
def _mean_variance_norm(node: Node, x: Any) -> Any:
    over = node.get("axes") or [0, 2, 3]
    off = x - T.mean(x, over, keepdim=True)
    return off / (T.sqrt(T.mean(off * off, over, keepdim=True)) + 1e-9)


@operator("LRN")
def _lrn(node: Node, x: Any) -> Any:
    size, square = node.get("size"), x * x
    low, high = (size - 1) // 2, size // 2
    shape = list(x.shape)
    parts = []
    for width in (low, high):
        shape[1] = width
        parts.append(T.zeros(shape, x.dtype))
    around, channels = T.concat([parts[0], square, parts[1]], 1), x.shape[1]
    total = around[:, 0:channels]
    for i in range(1, size):
        total = total + around[:, i : i + channels]
    scale = node.get("bias", 1.0) + total * (node.get("alpha", 1e-4) / size)
    return x / scale ** node.get("beta", 0.75)


@operator("Det")
def _det(node: Node, x: Any) -> Any:
    return like(det(x), x)
