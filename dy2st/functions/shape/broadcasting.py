"""Tensors repeated: broadcasting, tiles, grids."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.functions.core.operands import broadcast_shapes, cast_to, integers, one_axis, op, tensor
from dy2st.functions.shape.manipulation import filled, reshape, reshape_to
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar, binary, split_shape

_EXPAND_DIMS, _BROADCAST = op("expand_dims"), op("broadcast")


def expand(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return x repeated to a shape by the rules of broadcasting; -1 keeps an extent.

    >>> import dy2st as paddle
    >>> paddle.expand(paddle.to_tensor([[1], [2]]), [-1, 2]).tolist()
    [[1, 1], [2, 2]]
    """
    x = tensor(x, "expand")
    template, dims = split_shape(shape)
    old = x.shape
    lead = len(template) - len(old)
    if lead < 0:
        raise ValueError(f"expand: a tensor of shape {old} cannot be expanded to fewer axes, {list(template)}")
    wanted = filled(template, dims)
    for i, extent in enumerate(wanted):
        if not isinstance(extent, int):
            continue
        if extent == -1 and i < lead:
            raise ValueError(f"expand: axis {i} is new, so its extent cannot be -1")
        had = old[i - lead] if i >= lead else 1
        if extent == -1:
            wanted[i] = had
        elif isinstance(had, int) and had not in (1, extent):
            raise ValueError(f"expand: a tensor of shape {old} cannot be expanded to {list(template)}")
    template, dims = split_shape(wanted)
    return apply(_BROADCAST, x, *dims, shape=template)


broadcast_to = expand


def expand_as(x: Any, y: Tensor, name: str | None = None) -> Tensor:
    """Return x repeated to the shape of y."""
    return expand(x, y.shape)


def common_shape(shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the shape to which shapes of ints and symbolic ints broadcast."""
    if builtins.all(isinstance(e, int) for s in shapes for e in s):
        return broadcast_shapes(*shapes)
    rank = max(len(s) for s in shapes)
    result: list[Any] = []
    for axis in range(-rank, 0):
        met: Any = 1
        for s in shapes:
            if len(s) >= -axis:
                met = _common_extent(met, s[axis])
        result.append(met)
    return result


def _common_extent(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if a != b and 1 not in (a, b):
            raise ValueError(f"operands could not be broadcast together: extents {a} and {b} differ")
        return b if a == 1 else a
    if isinstance(a, int) and a == 1:
        return b
    if isinstance(b, int) and b == 1:
        return a
    return binary("broadcast_extent", a, b)


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """Return the shape to which two shapes broadcast."""
    return broadcast_shapes(x_shape, y_shape)


def broadcast_tensors(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Return tensors broadcast to one shape."""
    tensors = [tensor(t, "broadcast_tensors") for t in input]
    shape = common_shape([t.shape for t in tensors])
    return [expand(t, shape) for t in tensors]


def tile(x: Any, repeat_times: Any, name: str | None = None) -> Tensor:
    """Return x repeated so many times along each axis.

    >>> import dy2st as paddle
    >>> paddle.tile(paddle.to_tensor([1, 2]), [2, 2]).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = tensor(x, "tile")
    times = integers(repeat_times, "tile: repeat_times")
    if builtins.any(isinstance(t, int) and t < 0 for t in times):
        raise ValueError(f"tile: repeat_times must not be negative, but is {repeat_times}")
    shape = x.shape
    times = [1] * (len(shape) - len(times)) + times
    shape = [1] * (len(times) - len(shape)) + shape
    wide = reshape_to(x, [e for extent in shape for e in (1, extent)])
    full = expand(wide, [e for t, extent in zip(times, shape, strict=True) for e in (t, extent)])
    return reshape_to(full, [t * e for t, e in zip(times, shape, strict=True)])


def repeat_interleave(
    x: Any, repeats: Any, axis: Any = None, name: str | None = None, *, output_size: int | None = None
) -> Tensor:
    """Return x with each slice along an axis (each element when None) repeated; `repeats` is an int or one a slice."""
    x = tensor(x, "repeat_interleave")
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    axis = one_axis(axis, x.ndim, "repeat_interleave")
    if isinstance(repeats, Tensor) and (repeats.ndim == 0 or _is_one(repeats.shape[0])):
        repeats = repeats.item()
    if isinstance(repeats, (int, Scalar)):
        if isinstance(repeats, int) and repeats < 0:
            raise ValueError(f"repeat_interleave: repeats must not be negative, not {repeats}")
        shape = x.shape
        wide = apply(_EXPAND_DIMS, x, axes=(axis + 1,))
        full = expand(wide, [*shape[: axis + 1], repeats, *shape[axis + 1 :]])
        return reshape_to(full, [*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]])
    if isinstance(repeats, Tensor) and current().trace is not None:
        return _by_counts(x, expand(cast_to(repeats, dtypes.int64), [x.shape[axis]]), axis)
    listed = repeats.tolist() if isinstance(repeats, Tensor) else [int(r) for r in repeats]
    if len(listed) != x.shape[axis]:
        raise ValueError(f"repeat_interleave: {len(listed)} counts for an axis of extent {x.shape[axis]}")
    places = [i for i, count in enumerate(listed) for _ in range(count)]
    return take_slices(x, places, axis)


def _is_one(extent: Any) -> bool:
    return isinstance(extent, int) and extent == 1


def _by_counts(x: Tensor, counts: Tensor, axis: int) -> Tensor:
    """Return each slice as often as `counts`, which only the run tells, says: at a place stands the first that ends
    behind it.
    """
    ends = apply(op("cumsum"), counts, axis=0, reverse=False)
    total = apply(op("sum"), counts, axis=(0,), keepdim=False).item()
    places = apply(op("arange"), 0, total, 1, dtype=dtypes.int64)
    ended = apply(_EXPAND_DIMS, ends, axes=(0,)) <= apply(_EXPAND_DIMS, places, axes=(1,))
    return apply(op("take"), x, apply(op("sum"), ended, axis=(1,), keepdim=False), axis=axis)


def take_slices(x: Tensor, places: Sequence[int], axis: int) -> Tensor:
    """Return the slices at known places along an axis."""
    return apply(op("take"), x, tensor(np.asarray(places, np.int64), "take"), axis=axis)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return, for vectors, the grids of their elements: axis i runs along vector i.

    >>> import dy2st as paddle
    >>> [g.tolist() for g in paddle.meshgrid(paddle.to_tensor([1, 2]), paddle.to_tensor([3]))]
    [[[1], [2]], [[3], [3]]]
    """
    vectors = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    vectors = [reshape(tensor(v, "meshgrid"), [-1]) for v in vectors]
    shape = [v.shape[0] for v in vectors]
    rank = len(shape)
    return [
        expand(apply(_EXPAND_DIMS, v, axes=tuple(a for a in range(rank) if a != i)) if rank > 1 else v, shape)
        for i, v in enumerate(vectors)
    ]
