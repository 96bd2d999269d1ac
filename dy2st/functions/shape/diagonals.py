"""Triangles and diagonals of matrices."""

from __future__ import annotations

import builtins
from typing import Any

from dy2st.functions.core.operands import number, one_axis, op, tensor
from dy2st.functions.shape.manipulation import reshape
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import split_shape

_TRIL, _TRIU, _DIAGONAL = op("tril"), op("triu"), op("diagonal")


def tril(x: Any, diagonal: int = 0, name: str | None = None) -> Tensor:
    """Return the lower triangle of the last two axes, up to this diagonal, zeros above."""
    return apply(_TRIL, tensor(x, "tril"), diagonal=int(diagonal))


def triu(x: Any, diagonal: int = 0, name: str | None = None) -> Tensor:
    """Return the upper triangle of the last two axes, from this diagonal, zeros below."""
    return apply(_TRIU, tensor(x, "triu"), diagonal=int(diagonal))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Tensor:
    """Return a diagonal of the planes of two axes, as the last axis."""
    x = tensor(x, "diagonal")
    axes = one_axis(axis1, x.ndim, "diagonal"), one_axis(axis2, x.ndim, "diagonal")
    if axes[0] == axes[1]:
        raise ValueError(f"diagonal: axis1 and axis2 are one axis: {axis1} and {axis2} of a tensor of {x.ndim}")
    return apply(_DIAGONAL, x, offset=int(offset), axes=axes)


def diag(x: Any, offset: int = 0, padding_value: float = 0, name: str | None = None) -> Tensor:
    """Return the diagonal of a matrix, or the matrix whose diagonal is a vector and whose rest is padding_value."""
    x = tensor(x, "diag")
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        raise ValueError(f"diag needs a vector or a matrix, not {x.shape}")
    made = diag_embed(x, offset, 0, 1)
    if padding_value == 0:
        return made
    on_it = diag_embed(apply(op("ones_like"), x), offset, 0, 1)
    return apply(op("where"), on_it != 0, made, number(padding_value, x.dtype, x))


def diagflat(x: Any, offset: int = 0, name: str | None = None) -> Tensor:
    """Return the matrix whose diagonal has the elements of x."""
    return diag_embed(reshape(tensor(x, "diagflat"), [-1]), offset, 0, 1)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return planes, in two new axes, whose diagonal is the last axis of `input`, zeros elsewhere."""
    input = tensor(input, "diag_embed")
    rank = input.ndim + 1
    axes = one_axis(dim1, rank, "diag_embed"), one_axis(dim2, rank, "diag_embed")
    if axes[0] == axes[1]:
        raise ValueError(f"diag_embed: dim1 and dim2 are both {dim1}")
    extent = input.shape[-1] + builtins.abs(offset)
    rest = iter(input.shape[:-1])
    shape = [extent if i in axes else next(rest) for i in range(rank)]
    template, dims = split_shape(shape)
    return apply(op("diagonal_embed"), input, *dims, shape=template, offset=int(offset), axes=axes)
