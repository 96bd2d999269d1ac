"""Tensors put together and taken apart by rows, columns and depth, and in all combinations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.functions.core.lists import list_joined, list_rank, list_stacked
from dy2st.functions.core.operands import constant, one_axis, tensor, together
from dy2st.functions.shape import concat_split
from dy2st.functions.shape.broadcasting import expand
from dy2st.functions.shape.creation import arange
from dy2st.functions.shape.gather_scatter import index_select
from dy2st.functions.shape.manipulation import reshape_to, unsqueeze
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.union import SymbolicList


def atleast_1d(*inputs: Any, name: str | None = None) -> Any:
    """Return tensors of at least one axis, one for each input (a list where there are several).

    >>> import dy2st as paddle
    >>> paddle.atleast_1d(paddle.to_tensor(3)).tolist()
    [3]
    """
    return _each(inputs, 1)


def atleast_2d(*inputs: Any, name: str | None = None) -> Any:
    """Return tensors of at least two axes; new ones come first."""
    return _each(inputs, 2)


def atleast_3d(*inputs: Any, name: str | None = None) -> Any:
    """Return tensors of at least three axes: [n] becomes [1, n, 1], and [m, n] becomes [m, n, 1]."""
    return _each(inputs, 3)


def _each(inputs: Sequence[Any], rank: int) -> Any:
    given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
    found = [_raised(tensor(x, f"atleast_{rank}d"), rank) for x in given]
    return found[0] if len(found) == 1 else found


def _raised(x: Tensor, rank: int) -> Tensor:
    if rank == 3 and x.ndim in (1, 2):
        return unsqueeze(x, [0, 2] if x.ndim == 1 else [2])
    return unsqueeze(x, list(range(rank - x.ndim))) if x.ndim < rank else x


def hstack(x: Sequence[Any], name: str | None = None) -> Tensor:
    """Return tensors one after the other along the second axis, vectors along their only one."""
    if isinstance(x, SymbolicList):
        return _of_list(x, 1 if list_rank(x, "hstack") > 1 else 0, 1, "hstack")
    rows = [_raised(t, 1) for t in together(x, "hstack")]
    return concat_split.concat(rows, 0 if rows[0].ndim == 1 else 1)


def vstack(x: Sequence[Any], name: str | None = None) -> Tensor:
    """Return tensors one below the other, vectors as rows."""
    if isinstance(x, SymbolicList):
        return _of_list(x, 0, 2, "vstack")
    return concat_split.concat([_raised(t, 2) for t in together(x, "vstack")], 0)


row_stack = vstack


def dstack(x: Sequence[Any], name: str | None = None) -> Tensor:
    """Return tensors one behind the other, along the third axis."""
    if isinstance(x, SymbolicList):
        return _of_list(x, 2, 3, "dstack")
    return concat_split.concat([_raised(t, 3) for t in together(x, "dstack")], 2)


def column_stack(x: Sequence[Any], name: str | None = None) -> Tensor:
    """Return tensors side by side, vectors as columns."""
    if isinstance(x, SymbolicList):
        return _of_list(x, 1, 2, "column_stack")
    columns = [reshape_to(t, [*t.shape, 1]) if t.ndim == 1 else _raised(t, 2) for t in together(x, "column_stack")]
    return concat_split.concat([reshape_to(t, [1, 1]) if t.ndim == 0 else t for t in columns], 1)


def _of_list(items: SymbolicList, axis: int, rank: int, name: str) -> Tensor:
    """Return the tensors of a list joined along an axis, where each has at least `rank` axes or is given them."""
    own = list_rank(items, name)
    if own >= rank:
        return list_joined(items, axis, name)
    place = min(axis, own)
    stacked = list_stacked(items, place, name)
    before, after = axis - place, rank - own - 1 - (axis - place)
    return unsqueeze(stacked, [*range(before), *range(rank - after, rank)]) if before or after else stacked


def hsplit(x: Any, num_or_indices: Any, name: str | None = None) -> list[Tensor]:
    """Return pieces along the second axis (of a vector, its only one): so many, or between these places."""
    x = _of_rank(x, 1, "hsplit")
    return concat_split.tensor_split(x, num_or_indices, 0 if x.ndim == 1 else 1)


def vsplit(x: Any, num_or_indices: Any, name: str | None = None) -> list[Tensor]:
    """Return pieces along the first axis: so many, or between these places."""
    return concat_split.tensor_split(_of_rank(x, 2, "vsplit"), num_or_indices, 0)


def dsplit(x: Any, num_or_indices: Any, name: str | None = None) -> list[Tensor]:
    """Return pieces along the third axis: so many, or between these places."""
    return concat_split.tensor_split(_of_rank(x, 3, "dsplit"), num_or_indices, 2)


def _of_rank(x: Any, least: int, name: str) -> Tensor:
    x = tensor(x, name)
    if x.ndim < least:
        raise ValueError(f"{name} needs a tensor of {least} axes or more, not of shape {x.shape}")
    return x


def block_diag(inputs: Sequence[Any], name: str | None = None) -> Tensor:
    """Return a matrix with these matrices (vectors are rows) along its diagonal and zeros elsewhere.

    >>> import dy2st as paddle
    >>> paddle.block_diag([paddle.to_tensor([[1, 2]]), paddle.to_tensor([[3]])]).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    blocks = [_raised(t, 2) for t in together(inputs, "block_diag")]
    if any(t.ndim > 2 for t in blocks):
        raise ValueError("block_diag needs matrices, vectors or numbers")
    rows = []
    for i, block in enumerate(blocks):
        height, dtype = block.shape[0], block.dtype
        around = [expand(constant(np.zeros((1, 1), dtype.numpy)), [height, other.shape[1]]) for other in blocks]
        rows.append(concat_split.concat([*around[:i], block, *around[i + 1 :]], 1))
    return concat_split.concat(rows, 0)


def cartesian_prod(x: Sequence[Any], name: str | None = None) -> Tensor:
    """Return [n1 * n2 * ..., k]: all combinations of an element of each of k vectors; of one vector, itself."""
    vectors = together(x, "cartesian_prod")
    if any(t.ndim != 1 for t in vectors):
        raise ValueError("cartesian_prod needs vectors")
    if len(vectors) == 1:
        return vectors[0]
    shape = [t.shape[0] for t in vectors]
    beside = [[e if i == j else 1 for j, e in enumerate(shape)] for i in range(len(vectors))]
    grids = [expand(reshape_to(t, b), shape) for t, b in zip(vectors, beside, strict=True)]
    found = concat_split.stack(grids, -1)
    return found.reshape([-1, len(vectors)])


def combinations(x: Any, r: int = 2, with_replacement: bool = False, name: str | None = None) -> Tensor:
    """Return [count, r]: the combinations of r elements of a vector, an element several times with replacement."""
    x = tensor(x, "combinations")
    if x.ndim != 1:
        raise ValueError(f"combinations needs a vector, not a tensor of shape {x.shape}")
    if r < 0:
        raise ValueError(f"combinations: r must not be negative, not {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(range(int(x.shape[0])), r))
    places = np.array(chosen, np.int64).reshape(len(chosen), r)
    return reshape_to(index_select(x, constant(places.reshape(-1))), list(places.shape))


def unfold(x: Any, axis: int, size: int, step: int, name: str | None = None) -> Tensor:
    """Return the windows of `size` elements, `step` apart, along an axis, as a new last axis."""
    x = tensor(x, "unfold")
    axis = one_axis(axis, x.ndim, "unfold")
    extent = x.shape[axis]
    if step < 1 or size < 0 or (isinstance(extent, int) and size > extent):
        raise ValueError(f"unfold: windows of {size} elements, {step} apart, do not fit an axis of {extent}")
    count = (extent - size) // step + 1
    places = unsqueeze(arange(count) * step, 1) + arange(size)
    found = index_select(x, places.reshape([-1]), axis)
    split = reshape_to(found, [*x.shape[:axis], count, size, *x.shape[axis + 1 :]])
    return split.moveaxis(axis + 1, -1)


def as_strided(x: Any, shape: Sequence[int], stride: Sequence[int], offset: int = 0, name: str | None = None) -> Tensor:
    """Return the elements of x, taken as one vector, at offset + index * stride; a copy, not a view of the memory.

    >>> import dy2st as paddle
    >>> paddle.as_strided(paddle.arange(5), [3, 2], [1, 2]).tolist()
    [[0, 2], [1, 3], [2, 4]]
    """
    x = tensor(x, "as_strided")
    if len(shape) != len(stride):
        raise ValueError(f"as_strided: {len(shape)} extents and {len(stride)} strides")
    if any(extent < 0 for extent in shape):
        raise ValueError(f"as_strided: an extent of {list(shape)} is negative")
    size, ends = x.size, [(extent - 1) * step for extent, step in zip(shape, stride, strict=True)]
    first, last = offset + sum(min(end, 0) for end in ends), offset + sum(max(end, 0) for end in ends)
    if 0 not in shape and (first < 0 or last >= (size if isinstance(size, int) else 2**63)):
        raise IndexError(f"as_strided reads elements {first} to {last} of {size if isinstance(size, int) else 'x'}")
    places = np.full((), offset if 0 not in shape else 0, np.int64)
    for extent, step in zip(shape, stride, strict=True):
        places = places[..., None] + np.arange(extent) * (step if 0 not in shape else 0)
    found = index_select(reshape_to(x, [-1]), constant(places.reshape(-1)))
    return reshape_to(found, list(shape))
