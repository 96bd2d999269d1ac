"""Copies of a tensor of which one part has other values: a place, a slice, a diagonal."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.assigning import clone
from dy2st.functions.core.operands import cast_to, one_axis, op, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.shape.creation import ones_like
from dy2st.functions.shape.diagonals import diagonal
from dy2st.functions.shape.indexing import setitem
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import split_shape


def select_scatter(x: Any, values: Any, axis: int, index: int, name: str | None = None) -> Tensor:
    """Return a copy of x that has `values` at one place of an axis.

    >>> import dy2st as paddle
    >>> paddle.select_scatter(paddle.zeros([2, 2]), paddle.ones([2]), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    x = tensor(x, "select_scatter")
    return _with(x, (*_whole(one_axis(axis, x.ndim, "select_scatter")), index), values, "select_scatter")


def slice_scatter(
    x: Any, value: Any, axes: Any, starts: Any, ends: Any, strides: Any, name: str | None = None
) -> Tensor:
    """Return a copy of x that has `value` in a slice: from `starts` to `ends` by `strides` along each of `axes`."""
    x = tensor(x, "slice_scatter")
    if not len(axes) == len(starts) == len(ends) == len(strides):
        raise ValueError("slice_scatter: axes, starts, ends and strides must be of one length")
    found = [slice(None)] * x.ndim
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        found[one_axis(axis, x.ndim, "slice_scatter")] = slice(start, end, stride)
    return _with(x, tuple(found), value, "slice_scatter")


def diagonal_scatter(
    x: Any, y: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None
) -> Tensor:
    """Return a copy of x that has y on a diagonal of the planes of two axes."""
    x, y = tensor(x, "diagonal_scatter"), tensor(y, "diagonal_scatter")
    axes = one_axis(axis1, x.ndim, "diagonal_scatter"), one_axis(axis2, x.ndim, "diagonal_scatter")
    part = diagonal(x, offset, *axes)
    if all(isinstance(e, int) for e in (*part.shape, *y.shape)) and part.shape != y.shape:
        raise ValueError(f"diagonal_scatter: the diagonal has shape {part.shape}, the values {y.shape}")
    template, dims = split_shape(x.shape)
    on = {"shape": template, "offset": offset, "axes": axes}
    there = apply(op("diagonal_embed"), ones_like(part), *dims, **on)
    return where(there != 0, apply(op("diagonal_embed"), cast_to(y, x.dtype), *dims, **on), x)


def fill_diagonal_tensor(
    x: Any, y: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, name: str | None = None
) -> Tensor:
    """Return a copy of x that has y on a diagonal of the planes of two axes."""
    return diagonal_scatter(x, y, offset, dim1, dim2)


def _whole(count: int) -> tuple[slice, ...]:
    return (slice(None),) * count


def _with(x: Tensor, at: Any, value: Any, name: str) -> Tensor:
    made = clone(x)
    part = made[at]
    value = tensor(value, name)
    if all(isinstance(e, int) for e in (*part.shape, *value.shape)) and part.shape != value.shape:
        raise ValueError(f"{name}: the part has shape {part.shape}, the values {value.shape}")
    setitem(made, at, value)
    return made
