"""Tensors joined along an axis, and the parts of a tensor along an axis."""

from __future__ import annotations

import builtins
from itertools import pairwise
from typing import Any

from dy2st.functions.core.lists import list_joined, list_stacked
from dy2st.functions.core.operands import integers, one_axis, op, tensor, together, whole
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar, split_shape
from dy2st.runtime.tracer.values.union import SymbolicList

_CONCAT, _STACK, _SPLIT = op("concat"), op("stack"), op("split")


def concat(x: Any, axis: Any = 0, name: str | None = None) -> Tensor:
    """Return tensors one after the other along an axis; their other extents are equal.

    >>> import dy2st as paddle
    >>> paddle.concat([paddle.to_tensor([1, 2]), paddle.to_tensor([3])]).tolist()
    [1, 2, 3]
    """
    if isinstance(x, SymbolicList):
        return list_joined(x, axis, "concat")
    if isinstance(x, Tensor):
        x = unbind(x)
    tensors = together(list(x), "concat")
    rank = max([t.ndim for t in tensors])
    if rank == 0:
        raise ValueError("concat: 0-D tensors have no axis to be joined along; use stack")
    return apply(_CONCAT, *tensors, axis=one_axis(axis, rank, "concat"))


def stack(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Return tensors of one shape side by side along a new axis.

    >>> import dy2st as paddle
    >>> paddle.stack([paddle.to_tensor([1, 2]), paddle.to_tensor([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    if isinstance(x, SymbolicList):
        return list_stacked(x, axis, "stack")
    if isinstance(x, Tensor):
        x = unbind(x)
    tensors = together(list(x), "stack")
    return apply(_STACK, *tensors, axis=one_axis(axis, tensors[0].ndim + 1, "stack"))


def split(x: Any, num_or_sections: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Return parts along an axis: `num_or_sections` equal ones, or ones of these extents (one may be -1).

    >>> import dy2st as paddle
    >>> [part.tolist() for part in paddle.split(paddle.to_tensor([1, 2, 3]), [1, -1])]
    [[1], [2, 3]]
    """
    x = tensor(x, "split")
    axis = one_axis(axis, x.ndim, "split")
    extent = x.shape[axis]
    if isinstance(num_or_sections, (int, Scalar)):
        sections = _equal_parts(extent, whole(num_or_sections, "split"), axis)
    else:
        sections = integers(list(num_or_sections), "split")
        unknown = [i for i, s in enumerate(sections) if isinstance(s, int) and s == -1]
        if len(unknown) > 1:
            raise ValueError(f"split: only one section may be -1, not {sections}")
        if unknown:
            rest = extent
            for s in sections:
                rest = rest if isinstance(s, int) and s == -1 else rest - s
            sections[unknown[0]] = rest
    template, dims = split_shape(sections)
    parts = apply(_SPLIT, x, *dims, sections=template, axis=axis)
    return list(parts) if isinstance(parts, tuple) else [parts]


def _equal_parts(extent: Any, count: Any, axis: int) -> list[Any]:
    if not isinstance(count, int) or count <= 0:
        raise ValueError(f"split: the number of parts must be a known int of at least 1, not {count}")
    if isinstance(extent, int) and extent % count:
        raise ValueError(f"split: axis {axis} of extent {extent} cannot be split into {count} equal parts")
    return [extent // count] * count


def chunk(x: Any, chunks: int, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Return `chunks` equal parts along an axis."""
    return split(x, chunks, axis)


def tensor_split(x: Any, num_or_indices: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Return parts along an axis, as equal as can be, or cut at these indices."""
    x = tensor(x, "tensor_split")
    axis = one_axis(axis, x.ndim, "tensor_split")
    extent = x.shape[axis]
    if isinstance(num_or_indices, int):
        size, longer = extent // num_or_indices, extent % num_or_indices
        cuts = [size * i + (i if isinstance(longer, int) and i < longer else longer) for i in range(1, num_or_indices)]
    else:
        cuts = integers(list(num_or_indices), "tensor_split")
    lead = (slice_all(),) * axis
    bounds = [None, *cuts, None]
    return [index(x, (*lead, builtins.slice(a, b))) for a, b in pairwise(bounds)]


def slice_all() -> builtins.slice:
    """Return the slice of everything."""
    return builtins.slice(None)


def index(x: Tensor, key: Any) -> Tensor:
    """Return x[key]."""
    return x[key]


def unbind(input: Any, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis, without that axis.

    >>> import dy2st as paddle
    >>> [row.tolist() for row in paddle.unbind(paddle.to_tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    input = tensor(input, "unbind")
    axis = one_axis(axis, input.ndim, "unbind")
    extent = whole(input.shape[axis], "unbind")
    if not isinstance(extent, int):
        extent = extent.__index__()  # raises what a symbolic extent raises where Python needs it
    return [index(input, (*(slice_all(),) * axis, i)) for i in range(extent)]


def unstack(x: Any, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """Return the slices along an axis, without that axis; ValueError when there are not `num`."""
    parts = unbind(x, axis)
    if num is not None and num != len(parts):
        raise ValueError(f"unstack: axis {axis} has {len(parts)} slices, not {num}")
    return parts


def slice(input: Any, axes: Any, starts: Any, ends: Any) -> Tensor:
    """Return `input` from starts[i] to before ends[i] along axes[i].

    >>> import dy2st as paddle
    >>> paddle.slice(paddle.to_tensor([[1, 2, 3], [4, 5, 6]]), [1], [1], [3]).tolist()
    [[2, 3], [5, 6]]
    """
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


def strided_slice(x: Any, axes: Any, starts: Any, ends: Any, strides: Any, name: str | None = None) -> Tensor:
    """Return x from starts[i] to before ends[i] along axes[i], every strides[i]-th."""
    x = tensor(x, "strided_slice")
    key: list[Any] = [builtins.slice(None)] * x.ndim
    bounds = [integers(b, "slice") for b in (starts, ends, strides)]
    axes = integers(axes, "slice")
    if any(len(b) != len(axes) for b in bounds):
        raise ValueError(f"slice: {len(axes)} axes, but {', '.join(str(len(b)) for b in bounds)} starts, ends, strides")
    for axis, start, end, stride in zip(axes, *bounds, strict=True):
        if isinstance(stride, int) and stride < 0 and isinstance(end, int) and isinstance(x.shape[axis], int):
            end = None if end < -x.shape[axis] else end
        key[one_axis(axis, x.ndim, "slice")] = builtins.slice(start, end, stride)
    return x[tuple(key)]


def crop(x: Any, shape: Any = None, offsets: Any = None, name: str | None = None) -> Tensor:
    """Return the part of x of a shape (-1: to the end) that begins at offsets."""
    x = tensor(x, "crop")
    starts = [0] * x.ndim if offsets is None else integers(offsets, "crop")
    extents = x.shape if shape is None else integers(shape, "crop")
    key = [
        builtins.slice(a, None if isinstance(e, int) and e == -1 else a + e)
        for a, e in zip(starts, extents, strict=True)
    ]
    return x[tuple(key)]


def narrow(input: Any, dim: int, start: Any, length: Any) -> Tensor:
    """Return the part of an axis that begins at `start` and has this length."""
    return slice(input, [dim], [start], [start + length])
