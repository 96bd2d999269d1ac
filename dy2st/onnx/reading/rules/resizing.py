"""`Resize` and `Upsample`: along each axis a product with a matrix of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.onnx.reading.rules.elementwise import like
from dy2st.onnx.reading.runner import Node, operator

Matrix = np.ndarray[Any, Any]


def _numbers(node: Node, number: int) -> list[float] | None:
    """Return the numbers of an input that has to be known."""
    raw = node.raw[number] if number < len(node.raw) else None
    if raw is None:
        return None
    found = np.asarray(raw if isinstance(raw, np.ndarray) else raw.numpy()).reshape(-1).tolist()
    return found or None


@operator("Upsample")
def _upsample(node: Node, x: Any, scales: Any = None) -> Any:
    given = _numbers(node, 1) or node.get("scales")
    how = {"coordinate": "asymmetric", "nearest": "floor"}
    return _resized(node, x, list(range(x.ndim)), given, None, None, how)


@operator("Resize")
def _resize(node: Node, x: Any, *more: Any) -> Any:
    how = {"coordinate": node.get("coordinate_transformation_mode", "half_pixel"),
           "nearest": node.get("nearest_mode", "round_prefer_floor")}  # fmt: skip
    axes = [a % x.ndim for a in node.get("axes") or range(x.ndim)]
    if node.opset < 11:
        return _resized(node, x, axes, _numbers(node, 1), None, None, {"coordinate": "asymmetric", "nearest": "floor"})
    return _resized(node, x, axes, _numbers(node, 2), _numbers(node, 3), _numbers(node, 1), how)


def _resized(node: Node, x: Any, axes: Sequence[int], scales: Any, sizes: Any, roi: Any, how: dict[str, str]) -> Any:
    extents = [x.shape[a] for a in axes]
    if not all(isinstance(e, int) for e in x.shape):
        raise node.fail("the extents of what is resized have to be known")
    if sizes is not None:
        scales = [size / e for size, e in zip(sizes, extents, strict=True)]
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scales = [(min if policy == "not_larger" else max)(scales)] * len(scales)
            sizes = [math.floor(s * e + 0.5) for s, e in zip(scales, extents, strict=True)]
    else:
        sizes = [math.floor(e * s) for e, s in zip(extents, scales, strict=True)]
    made, beyond = x, None
    for i, axis in enumerate(axes):
        part = (roi[i], roi[len(axes) + i]) if roi is not None else (0.0, 1.0)
        at = _coordinates(extents[i], int(sizes[i]), scales[i], part, how["coordinate"])
        if how["coordinate"] == "tf_crop_and_resize":
            outside = np.logical_or(at < 0, at > extents[i] - 1)
            shape = [-1 if a == axis else 1 for a in range(x.ndim)]
            found = T.to_tensor(outside.reshape(shape))
            beyond = found if beyond is None else T.logical_or(beyond, found)
        if int(sizes[i]) == extents[i] and np.array_equal(at, np.arange(extents[i])):
            continue
        made = _along(made, _weights(node, at, extents[i], scales[i], how["nearest"]), axis)
    made = like(made, x)
    return made if beyond is None else T.where(beyond, T.full([], node.get("extrapolation_value", 0.0), x.dtype), made)


def _along(x: Any, weights: Matrix, axis: int) -> Any:
    perm = list(range(x.ndim))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    wide = x if x.dtype.is_floating else T.cast(x, "float64")
    made = T.matmul(T.transpose(wide, perm), T.to_tensor(weights.T.astype(wide.dtype.numpy)))
    return T.transpose(made, perm)


def _coordinates(extent: int, count: int, scale: float, part: tuple[float, float], mode: str) -> Matrix:
    """Return where each element of the result stands in the operand."""
    i = np.arange(count, dtype=np.float64)
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        return i * (extent - 1) / (count - 1) if count > 1 else i * 0
    if mode == "tf_crop_and_resize":
        start, end = part
        if count == 1:
            return np.asarray([0.5 * (start + end) * (extent - 1)])
        return start * (extent - 1) + i * (end - start) * (extent - 1) / (count - 1)
    half = (i + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel" and count <= 1:
        return i * 0
    if mode == "half_pixel_symmetric":
        return extent / 2 * (1 - count / (scale * extent)) + half
    return half


def _weights(node: Node, at: Matrix, extent: int, scale: float, nearest: str) -> Matrix:
    """Return the matrix that makes each element of the result from those of the operand."""
    mode, made = node.get("mode", "nearest"), np.zeros((len(at), extent))
    for row, x in zip(made, at, strict=True):
        if mode == "nearest":
            row[int(np.clip(_nearest(x, nearest), 0, extent - 1))] = 1.0
            continue
        narrow = min(scale, 1.0) if node.get("antialias", 0) else 1.0
        reach = math.ceil((1 if mode == "linear" else 2) / narrow)
        places = np.arange(math.floor(x) - reach, math.floor(x) + reach + 2)
        kernel = _linear if mode == "linear" else _cubic
        values = kernel((places - x) * narrow, node.get("cubic_coeff_a", -0.75))
        if node.get("exclude_outside", 0):
            values = np.where((places < 0) | (places >= extent), 0.0, values)
        np.add.at(row, np.clip(places, 0, extent - 1), values / values.sum())
    return made


def _nearest(x: float, mode: str) -> float:
    if mode == "floor":
        return math.floor(x)
    if mode == "ceil":
        return math.ceil(x)
    return math.ceil(x - 0.5) if mode == "round_prefer_floor" else math.floor(x + 0.5)


def _linear(x: Matrix, a: float) -> Matrix:
    return np.clip(1 - np.abs(x), 0, 1)


def _cubic(x: Matrix, a: float) -> Matrix:
    """Return Keys' kernel (1981): two cubic pieces."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))
