"""Statistics, searching, sorting and sets, with the arguments of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dy2st.array_api.data_types import astype
from dy2st.dtypes import dtype as as_dtype
from dy2st.dtypes import int64
from dy2st.functions.linalg import numerics
from dy2st.functions.math import reduction, search
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import ones, zeros
from dy2st.functions.shape.manipulation import unsqueeze
from dy2st.runtime.eager.tensor import Tensor

Axis = int | tuple[int, ...] | None


def all(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true."""
    return _over(reduction.all, _truth(x), axis, keepdims)


def any(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether an element is true."""
    return _over(reduction.any, _truth(x), axis, keepdims)


def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest element."""
    return _over(reduction.max, x, axis, keepdims)


def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element."""
    return _over(reduction.min, x, axis, keepdims)


def mean(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean."""
    return _over(reduction.mean, x, axis, keepdims)


def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum; of integers and bools in int64."""
    return _in(dtype, _over(reduction.sum, _widened(x, dtype), axis, keepdims))


def prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product; of integers and bools in int64."""
    return _in(dtype, _over(reduction.prod, _widened(x, dtype), axis, keepdims))


def var(x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance, with `correction` taken from the number of elements."""
    return _over(reduction.var, x, axis, keepdims, correction=correction)


def std(x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the root of the variance."""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:  # fmt: skip
    """Return the sums of the first elements along an axis, with the empty sum before them where that is asked for."""
    x = _widened(x, dtype)
    axis = _only_axis(x, axis, "cumulative_sum")
    first = [zeros(_edge(x, axis), x.dtype)] if include_initial else []
    return _in(dtype, concat([*first, reduction.cumsum(x, axis)], axis))


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:  # fmt: skip
    """Return the products of the first elements along an axis, with the empty product before them where asked for."""
    x = _widened(x, dtype)
    axis = _only_axis(x, axis, "cumulative_prod")
    first = [ones(_edge(x, axis), x.dtype)] if include_initial else []
    return _in(dtype, concat([*first, reduction.cumprod(x, axis)], axis))


def count_nonzero(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Count the elements that are not 0."""
    return _over(reduction.sum, astype(_truth(x), int64), axis, keepdims)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return where the first of the largest elements is."""
    return reduction.argmax(x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return where the first of the smallest elements is."""
    return reduction.argmin(x, axis, keepdims)


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Return for each axis where the elements that are not 0 are."""
    if x.ndim == 0:
        raise ValueError("nonzero needs a tensor with an axis")
    return tuple(column.reshape([-1]) for column in search.nonzero(x, as_tuple=True))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Return where each of `x2` belongs in `x1`, which is sorted, or is in the order of `sorter`."""
    return search.searchsorted(x1 if sorter is None else x1[sorter], x2, side=side)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in order along an axis."""
    return search.sort(x, axis, descending, stable)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the places of the elements in order along an axis."""
    return search.argsort(x, axis, descending, stable)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the n-th differences of neighbours along an axis."""
    return numerics.diff(x, n, axis, prepend, append)


class UniqueAll(NamedTuple):
    """Values, where each occurs first, which value each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Values, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Values, and which value each element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the different elements and all that can be said of them."""
    values, indices, inverse, counts = search.unique(x, True, True, True)
    return UniqueAll(values, indices, inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the different elements, and how often each occurs."""
    return UniqueCounts(*search.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the different elements, and which of them each element is."""
    values, inverse = search.unique(x, return_inverse=True)
    return UniqueInverse(values, inverse.reshape(x.shape))


def unique_values(x: Tensor, /) -> Tensor:
    """Return the different elements."""
    return search.unique(x)


def _over(function: Callable[..., Tensor], x: Tensor, axis: Axis, keepdims: bool, **more: Any) -> Tensor:
    """Reduce over axes, over all of them for None; for none of them each element is reduced alone."""
    if axis == ():
        return function(unsqueeze(x, -1), -1, **more)
    return function(x, list(axis) if isinstance(axis, tuple) else axis, keepdim=keepdims, **more)


def _truth(x: Any) -> Tensor:
    return x if x.dtype.is_bool else x != 0


def _widened(x: Tensor, dtype: Any) -> Tensor:
    if dtype is not None:
        return astype(x, as_dtype(dtype), copy=False)
    return astype(x, int64, copy=False) if x.dtype.kind in "biu" else x


def _in(dtype: Any, made: Tensor) -> Tensor:
    return made if dtype is None else astype(made, as_dtype(dtype), copy=False)


def _only_axis(x: Tensor, axis: int | None, name: str) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError(f"{name}: a tensor of {x.ndim} axes needs to be told along which one")
    return 0 if axis is None else axis


def _edge(x: Tensor, axis: int) -> list[Any]:
    shape = list(x.shape)
    shape[axis] = 1
    return shape
