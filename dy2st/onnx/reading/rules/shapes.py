"""Shapes, axes, parts, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.onnx.reading.rules.elementwise import like
from dy2st.onnx.reading.runner import Node, operator


@operator("Shape")
def _shape(node: Node, x: Any) -> Any:
    start, end = node.get("start", 0), node.get("end")
    extents = list(x.shape)[start:end]
    if all(isinstance(e, int) for e in extents):
        return T.to_tensor(np.asarray(extents, np.int64))
    return T.cast(T.slice(T.shape(x), [0], [start % x.ndim], [x.ndim if end is None else end]), "int64")


@operator("Size")
def _size(node: Node, x: Any) -> Any:
    return T.cast(T.numel(x), "int64")


@operator("Reshape")
def _reshape(node: Node, x: Any, shape: Any = None) -> Any:
    wanted = node.ints(1, "shape") or []
    if not node.get("allowzero", 0):
        wanted = [x.shape[i] if isinstance(e, int) and e == 0 else e for i, e in enumerate(wanted)]
    if any(isinstance(e, int) and e == 0 for e in wanted) and -1 not in wanted:
        return T.reshape(T.zeros([0], x.dtype) if not x.size else x, wanted)
    return T.reshape(x, wanted)


@operator("Flatten")
def _flatten(node: Node, x: Any) -> Any:
    axis = node.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    lead = 1
    for extent in x.shape[:axis]:
        lead = lead * extent
    return T.reshape(x, [lead, -1])


@operator("Transpose")
def _transpose(node: Node, x: Any) -> Any:
    return T.transpose(x, node.get("perm") or list(range(x.ndim))[::-1])


@operator("Squeeze")
def _squeeze(node: Node, x: Any, axes: Any = None) -> Any:
    over = node.ints(1, "axes")
    over = [i for i, e in enumerate(x.shape) if isinstance(e, int) and e == 1] if over is None else over
    return T.squeeze(x, [a % x.ndim for a in over]) if over else x


@operator("Unsqueeze")
def _unsqueeze(node: Node, x: Any, axes: Any = None) -> Any:
    over = node.ints(1, "axes") or []
    rank = x.ndim + len(over)
    for axis in sorted(a % rank for a in over):
        x = T.unsqueeze(x, axis)
    return x


@operator("Concat")
def _concat(node: Node, *xs: Any) -> Any:
    return T.concat(list(xs), node.get("axis", 1) % xs[0].ndim)


@operator("Split")
def _split(node: Node, x: Any, sections: Any = None) -> Any:
    axis = node.get("axis", 0) % x.ndim
    sizes = node.ints(1, "split")
    if sizes is None:
        count = node.get("num_outputs") or node.outputs
        size = -(-x.shape[axis] // count)
        sizes = [size] * (count - 1) + [x.shape[axis] - size * (count - 1)]
    parts, start = [], 0
    for size in sizes:
        parts.append(T.slice(x, [axis], [start], [start + size]))
        start = start + size
    return tuple(parts)


@operator("Expand")
def _expand(node: Node, x: Any, shape: Any) -> Any:
    wanted = node.ints(1) or []
    rank = max(len(wanted), x.ndim)
    have = [1] * (rank - x.ndim) + list(x.shape)
    wanted = [1] * (rank - len(wanted)) + wanted
    target = [h if isinstance(w, int) and w == 1 else w for h, w in zip(have, wanted, strict=True)]
    return T.broadcast_to(x, target)


@operator("Tile")
def _tile(node: Node, x: Any, repeats: Any) -> Any:
    return T.tile(x, node.ints(1) or [])


_FAR = 1 << 40


@operator("Slice")
def _slice(node: Node, x: Any, *given: Any) -> Any:
    starts, ends = node.ints(1, "starts") or [], node.ints(2, "ends") or []
    axes = node.ints(3, "axes") or list(range(len(starts)))
    steps = node.ints(4) or [1] * len(starts)
    key: list[Any] = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if isinstance(step, int) and step < 0:
            start, end = _near(start, 1), _near(end, -1)
            end = None if isinstance(end, int) and isinstance(x.shape[axis], int) and end < -x.shape[axis] else end
        elif isinstance(step, int):
            start, end = _near(start, -1), _near(end, 1)
        if isinstance(start, int) and isinstance(x.shape[axis], int):
            start = max(start, -x.shape[axis])
        key[axis] = slice(start, end, step)
    return x[tuple(key)]


def _near(place: Any, side: int) -> Any:
    """Return a place of a slice; None, its default, for a number that only says: as far as there is to this side."""
    return None if isinstance(place, int) and place * side > _FAR else place


@operator("Pad")
def _pad(node: Node, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    widths, over = node.ints(1, "pads") or [], node.ints(3) or list(range(x.ndim))
    fill = float(value) if value is not None and value.size else node.get("value", 0.0)
    mode, n = node.get("mode", "constant"), len(over)
    for i, axis in enumerate(over):
        x = _padded(x, axis % x.ndim, widths[i], widths[n + i], mode, fill)
    return x


def _padded(x: Any, axis: int, low: int, high: int, mode: str, fill: float) -> Any:
    """Pad one axis; a width below 0 cuts."""
    if low < 0 or high < 0:
        x = T.slice(x, [axis], [max(-low, 0)], [x.shape[axis] + min(high, 0)])
        low, high = max(low, 0), max(high, 0)
    if mode == "constant":
        parts = []
        for width in (low, high):
            shape = list(x.shape)
            shape[axis] = width
            parts.append(T.full(shape, fill, x.dtype))
        return T.concat([parts[0], x, parts[1]], axis)
    n = x.shape[axis]
    at = np.arange(-low, n + high)
    if mode == "edge":
        at = np.clip(at, 0, n - 1)
    elif mode == "wrap":
        at = at % n
    else:
        period = max(2 * (n - 1), 1)
        at = np.abs(at) % period
        at = np.where(at >= n, period - at, at)
    return T.index_select(x, T.to_tensor(at), axis)


@operator("Trilu")
def _trilu(node: Node, x: Any, k: Any = None) -> Any:
    (at,) = node.ints(1) or [0]
    wide = x if x.dtype.is_floating else T.cast(x, "int64")
    return like((T.triu if node.get("upper", 1) else T.tril)(wide, at), x)


@operator("DepthToSpace")
def _depth_to_space(node: Node, x: Any) -> Any:
    b, c, h, w = x.shape
    s = node.get("blocksize")
    if node.get("mode", "DCR") == "DCR":
        made = T.transpose(T.reshape(x, [b, s, s, c // (s * s), h, w]), [0, 3, 4, 1, 5, 2])
    else:
        made = T.transpose(T.reshape(x, [b, c // (s * s), s, s, h, w]), [0, 1, 4, 2, 5, 3])
    return T.reshape(made, [b, c // (s * s), h * s, w * s])


@operator("SpaceToDepth")
def _space_to_depth(node: Node, x: Any) -> Any:
    b, c, h, w = x.shape
    s = node.get("blocksize")
    made = T.transpose(T.reshape(x, [b, c, h // s, s, w // s, s]), [0, 3, 5, 1, 2, 4])
    return T.reshape(made, [b, c * s * s, h // s, w // s])


@operator("CenterCropPad")
def _center_crop_pad(node: Node, x: Any, shape: Any) -> Any:
    wanted, axes = node.ints(1) or [], node.get("axes") or list(range(x.ndim))
    for axis, target in zip(axes, wanted, strict=True):
        axis %= x.ndim
        off = target - x.shape[axis]
        low = off // 2 if off > 0 else -((-off) // 2)
        x = _padded(x, axis, low, off - low, "constant", 0.0)
    return x


@operator("ReverseSequence")
def _reverse_sequence(node: Node, x: Any, lengths: Any) -> Any:
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    line = T.arange(x.shape[time])
    shape = [1] * x.ndim
    shape[time] = x.shape[time]
    line = T.reshape(line, shape)
    shape = [1] * x.ndim
    shape[batch] = x.shape[batch]
    ends = T.reshape(T.cast(lengths, "int64"), shape)
    at = T.where(line < ends, ends - 1 - line, line)
    return T.take_along_axis(x, T.broadcast_to(at, x.shape), time)


@operator("OneHot")
def _one_hot(node: Node, at: Any, depth: Any, values: Any) -> Any:
    (classes,) = node.ints(1) or [0]
    axis = node.get("axis", -1)
    places = T.remainder(T.cast(at, "int64"), T.full([], classes, "int64"))
    seen = T.logical_and(T.cast(at, "int64") >= -classes, T.cast(at, "int64") < classes)
    on = T.logical_and(T.unsqueeze(places, -1) == T.arange(classes), T.unsqueeze(seen, -1))
    made = T.where(on, values[1], values[0])
    axis %= made.ndim
    return T.transpose(made, [*range(axis), made.ndim - 1, *range(axis, made.ndim - 1)])
