"""Shapes, joining and indexing, with the arguments of the array API standard."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.assigning import clone
from dy2st.functions.shape import broadcasting, concat_split, gather_scatter, manipulation
from dy2st.functions.shape.creation import arange
from dy2st.runtime.eager.tensor import Tensor


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Return the tensors in the shape in which they meet."""
    return list(broadcasting.broadcast_tensors(list(arrays)))


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """Return x in a shape, its axes of extent 1 repeated."""
    return broadcasting.broadcast_to(x, list(shape))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis; flattened where there is none."""
    if axis is None:
        return concat_split.concat([x.reshape([-1]) for x in arrays], 0)
    return concat_split.concat(list(arrays), axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Join tensors along a new axis."""
    return concat_split.stack(list(arrays), axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the parts of x along an axis."""
    return tuple(concat_split.unbind(x, axis))


def expand_dims(x: Any, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Return x with new axes of extent 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = x.ndim + len(axes)
    wrong = [a for a in axes if not -rank <= a < rank]
    if wrong:
        raise IndexError(f"expand_dims: there is no axis {wrong[0]} in a result of {rank} axes")
    return manipulation.unsqueeze(x, sorted(a % rank for a in axes))


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return x without axes, whose extent must be 1."""
    axes = [axis] if isinstance(axis, int) else list(axis)
    for a in axes:
        if not -x.ndim <= a < x.ndim or x.shape[a] != 1:
            raise ValueError(f"squeeze: {tuple(x.shape)} has no axis {a} of extent 1")
    return manipulation.squeeze(x, axes) if axes else x


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Return x with the order of its elements turned round along axes, along all of them where none is given."""
    return manipulation.flip(x, list(range(x.ndim)) if axis is None else axis)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Return x with axes moved to other places."""
    return manipulation.moveaxis(x, source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Return x with its axes in another order."""
    return manipulation.transpose(x, list(axes))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Return each element of x so many times, one behind the other."""
    if isinstance(repeats, Tensor) and repeats.size == 1:
        repeats = repeats.item()
    return broadcasting.repeat_interleave(x, repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """Return the elements of x in another shape; a copy where `copy` says so."""
    return manipulation.reshape(clone(x) if copy else x, list(shape))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Return x with its elements moved on, and what falls off the end at the beginning."""
    return manipulation.roll(x, shift, axis)


def tile(x: Any, repetitions: Any, /) -> Tensor:
    """Return x so many times along each axis."""
    return broadcasting.tile(x, list(repetitions))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the parts of x along an axis at some places, which may count from the end."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: a tensor of {x.ndim} axes needs to be told along which one")
    at = 0 if axis is None else axis % x.ndim
    return x[(*[slice(None)] * at, indices)]


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Return the elements along an axis at the places that a tensor of the same rank says."""
    places = indices.shape
    shape = broadcasting.broadcast_shape(_without(x.shape, axis), _without(places, axis))
    shape.insert(axis % x.ndim, places[axis])
    wide = broadcasting.broadcast_to(indices, shape)
    shape[axis] = x.shape[axis]
    return gather_scatter.take_along_axis(broadcasting.broadcast_to(x, shape), wide, axis, False)


def _without(shape: list[Any], axis: int) -> list[Any]:
    kept = list(shape)
    kept.pop(axis)
    return kept


def diagonal_of(x: Any, offset: int) -> Tensor:
    """Return the diagonals of the matrices that the last two axes are."""
    rows, columns = x.shape[-2:]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    down, right = max(0, -offset), max(0, offset)
    places = arange(count)
    return x[..., places + down, places + right]
