"""Order and places: sort, topk, gather, scatter, select, unique."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.operands import cast_to, constant, number, one_axis, op, pair, tensor, whole
from dy2st.functions.math import comparison
from dy2st.functions.shape import broadcasting
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_SORT, _ARGSORT, _TOPK, _INDEX = op("sort"), op("argsort"), op("topk"), op("index")
_CONCAT, _INDEX_ADD, _MASKED_SELECT, _CUMSUM = op("concat"), op("index_add"), op("masked_select"), op("cumsum")
_WHOLE = ("slice", None, None, None)


def sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = False, name: str | None = None) -> Tensor:
    """Return the elements in order along an axis; NaN counts as larger than every number.

    >>> import dy2st as paddle
    >>> paddle.sort(paddle.to_tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    x, axis = _along(x, axis, "sort")
    return apply(_SORT, x, axis=axis, descending=bool(descending)) if x.ndim else x


def argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = False, name: str | None = None) -> Tensor:
    """Return the int64 indices that sort x along an axis; of equal elements the first comes first."""
    x, axis = _along(x, axis, "argsort")
    if not x.ndim:
        return constant(np.zeros((), np.int64))
    return apply(_ARGSORT, x, axis=axis, descending=bool(descending))


def msort(input: Any) -> Tensor:
    """Return the elements in order along the first axis."""
    return sort(input, 0)


def topk(
    x: Any, k: Any, axis: int | None = None, largest: bool = True, sorted: bool = True, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the k largest (or smallest) elements along an axis, the last when None, and their int64 indices.

    >>> import dy2st as paddle
    >>> values, places = paddle.topk(paddle.to_tensor([1, 5, 3]), 2)
    >>> values.tolist(), places.tolist()
    ([5, 3], [1, 2])
    """
    x, axis = _along(x, -1 if axis is None else axis, "topk")
    count = whole(k, "topk")
    if not isinstance(count, int):
        count = count.__index__()  # raises: the shape of the result would not be known
    if count < 0:
        raise ValueError(f"topk: k must not be negative, not {count}")
    return apply(_TOPK, x, k=count, axis=axis, largest=bool(largest), sorted=bool(sorted))


def kthvalue(
    x: Any, k: int, axis: int | None = None, keepdim: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest element along an axis, the last when None, and its index."""
    x, axis = _along(x, -1 if axis is None else axis, "kthvalue")
    values, places = topk(x, k, axis, largest=False)
    spec = (*(_WHOLE,) * axis, ("slice", k - 1, k, None)) if keepdim else (*(_WHOLE,) * axis, ("int", k - 1))
    return apply(_INDEX, values, spec=spec), apply(_INDEX, places, spec=spec)


def _along(x: Any, axis: int, name: str) -> tuple[Tensor, int]:
    x = tensor(x, name)
    return x, one_axis(axis, builtins.max(x.ndim, 1), name)


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """Return the places of the elements that are not 0: int64 of shape [count, rank], or a tuple of vectors."""
    x = tensor(x, "nonzero")
    found = apply(op("nonzero"), x)
    return tuple(found[:, i] for i in range(x.ndim)) if as_tuple else found


def argwhere(input: Any) -> Tensor:
    """Return the places of the elements that are not 0."""
    return nonzero(input)


def searchsorted(
    sorted_sequence: Any, values: Any, out_int32: bool = False, right: bool = False, name: str | None = None,
    *, side: str | None = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Return where values would go in a sequence in ascending order: before equal ones, or behind with `right`.

    NaN comes last in that order, as in `sort`. With `sorter`, the integers of `argsort`, the sequence need not be in
    order.
    """
    if sorter is not None:
        line = tensor(sorted_sequence, "searchsorted")
        sorted_sequence = apply(op("take_along_axis"), line, tensor(sorter, "searchsorted"), axis=line.ndim - 1)
    sequence, values = pair(sorted_sequence, values, "searchsorted")
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side is {side!r}, not 'left' or 'right'")
    behind = right or side == "right"
    line = apply(op("expand_dims"), sequence, axes=(sequence.ndim - 1,)) if sequence.ndim > 1 else sequence
    wide = apply(op("expand_dims"), values, axes=(values.ndim,))
    before = line <= wide if behind else line < wide
    found = apply(op("sum"), before, axis=(before.ndim - 1,), keepdim=False)
    if values.dtype.is_floating:
        found = comparison.where(comparison.isnan(values), _places_of_nan(sequence, behind), found)
    return cast_to(found, dtypes.int32) if out_int32 else found


def _places_of_nan(line: Tensor, behind: bool) -> Tensor:
    """Return where NaN goes in sequences in ascending order, of which it is the last: before other NaN, or behind."""
    known = comparison.isnan(line)
    counted = comparison.logical_or(known, True) if behind else comparison.logical_not(known)
    return apply(op("sum"), counted, axis=(line.ndim - 1,), keepdim=line.ndim > 1)


def bucketize(
    x: Any, sorted_sequence: Any, out_int32: bool = False, right: bool = False, name: str | None = None
) -> Tensor:
    """Return the number of the bucket, between the bounds of a sequence, of each element."""
    return searchsorted(sorted_sequence, x, out_int32, right)


def one_hot(x: Any, num_classes: int, name: str | None = None) -> Tensor:
    """Return 1 at each class number, 0 elsewhere, along a new last axis, in the default float."""
    return apply(op("one_hot"), tensor(x, "one_hot"), num_classes=int(num_classes), dtype=dtypes.float32)


def bincount(x: Any, weights: Any = None, minlength: int = 0, name: str | None = None) -> Tensor:
    """Return how often each number 0, 1, ... occurs (or the sums of their weights)."""
    x = tensor(x, "bincount")
    if not x.dtype.is_integer:
        raise TypeError(f"bincount needs integers, not {x.dtype.name}")
    places, least = cast_to(x, dtypes.int64), constant(np.array([whole(minlength, "bincount") - 1]))
    length = apply(_CONCAT, places, least, axis=0).max() + 1
    size = whole(length, "bincount")
    values = constant(np.ones((), np.int64)) if weights is None else tensor(weights, "bincount")
    blank = broadcasting.expand(number(0, values.dtype), [size])
    places = comparison.where(places < 0, length, places)  # below 0 it would count from the end, this is an error
    return apply(_INDEX_ADD, blank, values, places, spec=(("tensor",),))


def unique(
    x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, dtype: Any = "int64", sorted: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """Return the different elements (or slices along an axis) in ascending order.

    With the flags also the index of the first of each, the place of each element among them, how often each occurs.
    Slices of more than one axis, and complex numbers, are told apart eagerly only.
    """
    x = tensor(x, "unique").detach()
    if (axis is None or x.ndim == 1) and not x.dtype.is_complex:
        line = x.reshape([-1])
        order = argsort(line, 0)
        line = apply(_INDEX, line, order, spec=(("tensor",),))
        new = _begins(line)
        if line.dtype.is_floating:  # NaN is one element
            unknown = apply(op("isnan"), line)
            new = new & (_begins(unknown) | ~unknown)
        return _runs(line, new, order, (return_index, return_inverse, return_counts), dtype)
    found = np.unique(
        x.numpy(), return_index=return_index, return_inverse=return_inverse, return_counts=return_counts, axis=axis
    )
    return _answer(found, dtype)


def _runs(line: Tensor, new: Tensor, places: Tensor | None, flags: tuple[bool, bool, bool], dtype: Any) -> Any:
    """Return the elements that are `new` in a line, and what the flags ask for, in it or at the places it is of."""
    values, number = (
        apply(_MASKED_SELECT, line, new),
        apply(_CUMSUM, cast_to(new, dtypes.int64), axis=0, reverse=False) - 1,
    )
    found, wanted = [], dict(zip(("index", "inverse", "counts"), flags, strict=True))
    if wanted["index"]:
        found.append(apply(_MASKED_SELECT, places, new))
    if wanted["inverse"]:
        found.append(number if places is None else apply(op("index_set"), places, number, places, spec=(("tensor",),)))
    if wanted["counts"]:
        blank = apply(op("zeros_like"), apply(_MASKED_SELECT, number, new))
        found.append(apply(_INDEX_ADD, blank, constant(np.ones((), np.int64)), number, spec=(("tensor",),)))
    return (values, *[cast_to(one, as_dtype(dtype)) for one in found]) if found else values


def _begins(line: Tensor) -> Tensor:
    """Say of each element whether it differs from the one before."""
    first = cast_to(apply(op("ones_like"), line[:1]), dtypes.bool_)
    return apply(_CONCAT, first, line[1:] != line[:-1], axis=0)


def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, dtype: Any = "int64",
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return the elements (or slices along an axis) without those equal to the one before.

    Slices of more than one axis are told apart eagerly only.
    """
    x = tensor(x, "unique_consecutive").detach()
    if axis is None or x.ndim == 1:
        line = x.reshape([-1])
        return _runs(line, _begins(line), None, (False, return_inverse, return_counts), dtype)
    array = x.numpy()
    lines = np.moveaxis(array, axis, 0)
    flat = lines.reshape(len(lines), -1)
    new = np.ones(len(flat), bool)
    new[1:] = (flat[1:] != flat[:-1]).any(axis=1)
    kept = np.moveaxis(lines[new], 0, axis)
    found = [kept]
    if return_inverse:
        found.append(np.cumsum(new) - 1)
    if return_counts:
        found.append(np.diff(np.append(np.flatnonzero(new), len(flat))))
    return _answer(tuple(found) if len(found) > 1 else kept, dtype)


def _answer(found: Any, dtype: Any) -> Any:
    if not isinstance(found, tuple):
        return constant(found)
    rest = [constant(f.reshape(-1).astype(as_dtype(dtype).numpy)) for f in found[1:]]
    return (constant(found[0]), *rest)
