"""Reductions over axes, and running sums, products and extrema."""

from __future__ import annotations

import math
from typing import Any

from dy2st import dtypes
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.operands import (
    all_axes,
    cast_to,
    floating,
    number,
    one_axis,
    op,
    ordered,
    ordered_floating,
    quotient_dtype,
    tensor,
    whole,
)
from dy2st.functions.shape.broadcasting import expand
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_SUM, _MEAN, _PROD, _MAX, _MIN, _ALL, _ANY = (op(n) for n in ("sum", "mean", "prod", "max", "min", "all", "any"))
_ARGMAX, _ARGMIN, _LOGSUMEXP = op("argmax"), op("argmin"), op("logsumexp")
_CUMSUM, _CUMPROD, _CUMMAX, _CUMMIN = op("cumsum"), op("cumprod"), op("cummax"), op("cummin")


def _reduce(made: Any, name: str, x: Any, axis: Any, keepdim: bool) -> Tensor:
    x = tensor(x, name)
    axes = tuple(range(x.ndim)) if axis is None else all_axes(axis, x.ndim, name)
    return apply(made, x, axis=axes, keepdim=bool(keepdim))


def sum(
    x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None,
    *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the sum over axes (all when None); of integers and booleans in int64.

    >>> import dy2st as paddle
    >>> paddle.sum(paddle.to_tensor([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    x = tensor(x, "sum")
    if dtype is None:
        return _into(out, _reduce(_SUM, "sum", x, axis, keepdim))
    total = _reduce(_SUM, "sum", cast_to(x, as_dtype(dtype)), axis, keepdim)
    return _into(out, cast_to(total, as_dtype(dtype)))


def mean(
    x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None,
    *, dtype: Any = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean over axes (all when None); of integers in float32.

    >>> import dy2st as paddle
    >>> paddle.mean(paddle.to_tensor([1.0, 2.0, 6.0])).item()
    3.0
    """
    x = tensor(x, "mean")
    return _into(out, _reduce(_MEAN, "mean", x if dtype is None else cast_to(x, as_dtype(dtype)), axis, keepdim))


def prod(
    x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, name: str | None = None,
    *, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the product over axes (all when None); of integers in int64."""
    x = tensor(x, "prod")
    result = _reduce(_PROD, "prod", x if dtype is None else cast_to(x, as_dtype(dtype)), axis, keepdim)
    return _into(out, result if dtype is None else cast_to(result, as_dtype(dtype)))


def max(
    x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the largest element over axes (all when None), NaN if one is; ValueError over no elements.

    >>> import dy2st as paddle
    >>> paddle.max(paddle.to_tensor([[1, 5], [3, 4]]), axis=1).tolist()
    [5, 4]
    """
    return _into(out, _reduce(_MAX, "max", x, axis, keepdim))


def min(
    x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the smallest element over axes (all when None), NaN if one is; ValueError over no elements."""
    return _into(out, _reduce(_MIN, "min", x, axis, keepdim))


def amax(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return the largest element; equal ones share the gradient evenly."""
    return _reduce(_MAX, "amax", x, axis, keepdim)


def amin(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return the smallest element; equal ones share the gradient evenly."""
    return _reduce(_MIN, "amin", x, axis, keepdim)


def all(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return a bool tensor: is no element over the axes (all when None) zero?

    >>> import dy2st as paddle
    >>> paddle.all(paddle.to_tensor([True, False])).item()
    False
    """
    return _reduce(_ALL, "all", x, axis, keepdim)


def any(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return a bool tensor: is some element over the axes (all when None) not zero?"""
    return _reduce(_ANY, "any", x, axis, keepdim)


def _where_extreme(made: Any, name: str, x: Any, axis: Any, keepdim: bool, dtype: Any) -> Tensor:
    x = tensor(x, name)
    found = None if axis is None else one_axis(axis, x.ndim, name)
    return cast_to(apply(made, x, axis=found, keepdim=bool(keepdim)), as_dtype(dtype))


def argmax(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """Return the index of the largest element along an axis (of all in row-major order when None).

    >>> import dy2st as paddle
    >>> paddle.argmax(paddle.to_tensor([[1, 5], [6, 4]]), axis=1).tolist()
    [1, 0]
    """
    return _where_extreme(_ARGMAX, "argmax", x, axis, keepdim, dtype)


def argmin(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """Return the index of the smallest element along an axis (of all in row-major order when None)."""
    return _where_extreme(_ARGMIN, "argmin", x, axis, keepdim, dtype)


def logsumexp(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return log(sum(e ** x)) over axes without overflow."""
    return _reduce(_LOGSUMEXP, "logsumexp", floating(x, "logsumexp"), axis, keepdim)


def count_nonzero(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return how many elements are not zero, in int64."""
    x = tensor(x, "count_nonzero")
    return _reduce(_SUM, "count_nonzero", x != 0, axis, keepdim)


def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return the sum over axes in which NaN counts as 0."""
    return sum(_without_nan(tensor(x, "nansum")), axis, dtype, keepdim)


def nanmean(x: Any, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return the mean of the elements that are not NaN."""
    x = tensor(x, "nanmean")
    count = sum(cast_to(x == x, x.dtype), axis, None, keepdim)
    return sum(_without_nan(x), axis, None, keepdim) / count


def _without_nan(x: Tensor) -> Tensor:
    return apply(op("where"), x == x, x, apply(op("zeros_like"), x)) if x.dtype.kind == "f" else x


def var(
    x: Any, axis: Any = None, unbiased: bool | None = None, keepdim: bool = False, name: str | None = None,
    *, correction: float = 1,
) -> Tensor:  # fmt: skip
    """Return the variance over axes; the sum of squares is divided by the count less `correction`.

    Of complex numbers it is real: that of the real parts and that of the imaginary ones together.

    >>> import dy2st as paddle
    >>> paddle.var(paddle.to_tensor([1.0, 3.0])).item()
    2.0
    """
    x = floating(x, "var")
    if x.dtype.is_complex:
        parts = [var(apply(op(part), x), axis, unbiased, keepdim, correction=correction) for part in ("real", "imag")]
        return parts[0] + parts[1]
    axes = all_axes(axis, x.ndim, "var")
    less = correction if unbiased is None else (1 if unbiased else 0)
    centred = x - apply(_MEAN, x, axis=axes, keepdim=True)
    total = apply(_SUM, apply(op("square"), centred), axis=axes, keepdim=bool(keepdim))
    count: Any = 1
    for i in axes:
        count = count * x.shape[i]
    return total / tensor(count - less, "var", x.dtype)


def std(x: Any, axis: Any = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None) -> Tensor:
    """Return the standard deviation over axes, the square root of `var`."""
    return apply(op("sqrt"), var(x, axis, unbiased, keepdim))


def cumsum(x: Any, axis: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the sums of the elements up to each one along an axis (of all in row-major order when None).

    >>> import dy2st as paddle
    >>> paddle.cumsum(paddle.to_tensor([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    x, axis = _along(x, axis, "cumsum")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    return apply(_CUMSUM, x, axis=axis, reverse=False)


def cumprod(x: Any, dim: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the products of the elements up to each one along an axis (of all in row-major order when None)."""
    x, axis = _along(x, dim, "cumprod")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    return apply(_CUMPROD, x, axis=axis, exclusive=False, reverse=False)


def cummax(x: Any, axis: Any = None, dtype: Any = "int64", name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the largest element up to each one, and its index."""
    x, axis = _along(x, axis, "cummax")
    values, indices = apply(_CUMMAX, x, axis=axis)
    return values, cast_to(indices, as_dtype(dtype))


def cummin(x: Any, axis: Any = None, dtype: Any = "int64", name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the smallest element up to each one, and its index."""
    x, axis = _along(x, axis, "cummin")
    values, indices = apply(_CUMMIN, x, axis=axis)
    return values, cast_to(indices, as_dtype(dtype))


def logcumsumexp(x: Any, axis: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return log(cumsum(e ** x)) along an axis, shifted by the largest element so that it does not overflow."""
    x, axis = _along(ordered_floating(x, "logcumsumexp"), axis, "logcumsumexp")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    top = apply(op("detach"), apply(_MAX, x, axis=(axis,), keepdim=True))
    return apply(op("log"), apply(_CUMSUM, apply(op("exp"), x - top), axis=axis, reverse=False)) + top


def _along(x: Any, axis: Any, name: str) -> tuple[Tensor, int]:
    x = tensor(x, name)
    if axis is None or x.ndim == 0:
        return apply(op("reshape"), x, shape=(-1,)), 0
    return x, one_axis(axis, x.ndim, name)


def median(x: Any, axis: Any = None, keepdim: bool = False, mode: str = "avg", name: str | None = None, *,
           out: Any = None) -> Any:  # fmt: skip
    """Return the middle element over an axis (all when None): by mode "avg" the mean of two, by "min" the lower one.

    Mode "min" along an axis gives the place of the element too, the first of several. `out` is written into: one
    tensor, or two where there are two results.

    >>> import dy2st as paddle
    >>> paddle.median(paddle.to_tensor([1.0, 4.0, 2.0, 3.0])).item()
    2.5
    """
    if mode not in ("avg", "min"):
        raise ValueError(f"median: mode is {mode!r}, not 'avg' or 'min'")
    given = ordered(x, "median")
    x, axis_of = _along(given, axis, "median")
    low, value = _middle(x, axis_of, mode)
    if keepdim:
        shape = [1] * given.ndim if axis is None else [1 if i == axis_of else e for i, e in enumerate(given.shape)]
        value = value.reshape(shape)
    if mode == "avg" or axis is None:
        return _into(out, value)
    same = (x == low) | (x != x)  # where there is a NaN, it is the median
    place = argmax(cast_to(same, dtypes.int32), axis_of, keepdim)
    return (value, place) if out is None else (_into(out[0], value), _into(out[1], place))


def _middle(x: Tensor, axis: int, mode: str) -> tuple[Tensor, Tensor]:
    """Return the lower middle element, its axis kept, and the median, NaN where there is one."""
    count = x.shape[axis]
    if isinstance(count, int) and count == 0:
        nothing = _of_nothing(x, axis)
        return apply(op("expand_dims"), nothing, axes=(axis,)), nothing
    ordered = apply(op("sort"), x, axis=axis, descending=False)
    if not isinstance(count, int) and (mode == "avg" or x.dtype.is_floating):  # the run may find no element: NaN then
        ordered = cast_to(ordered, quotient_dtype(x.dtype))
        row = [1 if i == axis else e for i, e in enumerate(x.shape)]
        missing = expand(number(float("nan"), ordered.dtype, ordered), row)
        ordered = apply(op("concat"), ordered, missing, axis=axis)
    found = lower = _pick(ordered, axis, (count - 1) // 2)
    if mode == "avg":
        other = _pick(ordered, axis, count // 2)
        dtype = quotient_dtype(x.dtype)
        found = cast_to(lower, dtype) * 0.5 + cast_to(other, dtype) * 0.5
    if x.dtype.kind == "f":
        some = apply(_ANY, x != x, axis=(axis,), keepdim=False)
        found = apply(op("where"), some, number(float("nan"), found.dtype, found), found)
    return apply(op("expand_dims"), lower, axes=(axis,)), found


def quantile(
    x: Any, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear", name: str | None = None
) -> Tensor:
    """Return quantiles over an axis (all when None), between elements by `interpolation`, in float64 of float64.

    `q` is a number, or a list of them, which gives a first axis.
    """
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ValueError(
            f"quantile: interpolation is {interpolation!r}, not linear, lower, higher, midpoint or nearest"
        )
    x = ordered_floating(x, "quantile")
    if isinstance(q, Tensor):
        q = q.tolist()
    if isinstance(q, (list, tuple)):
        parts = [quantile(x, one, axis, keepdim, interpolation) for one in q]
        return apply(op("stack"), *parts, axis=0)
    if not 0 <= q <= 1:
        raise ValueError(f"quantile: q must be from 0 to 1, not {q}")
    if isinstance(axis, (list, tuple)):
        axes = all_axes(axis, x.ndim, "quantile")
        rest = [i for i in range(x.ndim) if i not in axes]
        moved = apply(op("transpose"), x, perm=(*rest, *axes))
        found = quantile(moved.flatten(len(rest)), q, -1, False, interpolation)
        return found.reshape([1 if i in axes else e for i, e in enumerate(x.shape)]) if keepdim else found
    shape = [1] * x.ndim if axis is None else None
    along, axis_of = _along(x, axis, "quantile")
    found = _quantile(along, axis_of, q, interpolation)
    if not keepdim:
        return found
    return found.reshape(shape or [1 if i == axis_of else e for i, e in enumerate(x.shape)])


def _of_nothing(x: Tensor, axis: int) -> Tensor:
    """Return the NaN that stand for the middle of an empty axis."""
    dtype = quotient_dtype(x.dtype)
    return cast_to(apply(_SUM, x, axis=(axis,), keepdim=False), dtype) * float("nan")


def _quantile(x: Tensor, axis: int, q: float, interpolation: str) -> Tensor:
    if isinstance(x.shape[axis], int) and x.shape[axis] == 0:
        return _of_nothing(x, axis)
    ordered = apply(op("sort"), x, axis=axis, descending=False)
    if not isinstance(x.shape[axis], int):  # of nothing the NaN at the end is taken, from either side
        nothing = apply(op("expand_dims"), _of_nothing(x, axis), axes=(axis,))
        ordered = apply(op("concat"), ordered, nothing, axis=axis)
    place = (whole(x.shape[axis], "quantile") - 1) * float(q)
    low, high = _pick(ordered, axis, math.floor(place)), _pick(ordered, axis, math.ceil(place))
    if interpolation in ("linear", "midpoint"):
        share = 0.5 if interpolation == "midpoint" else place - math.floor(place)
        found = apply(op("where"), low == high, low, low + (high - low) * share)
    elif interpolation == "nearest":
        found = _pick(ordered, axis, round(place))
    else:
        found = low if interpolation == "lower" else high
    some = apply(_ANY, x != x, axis=(axis,), keepdim=False)
    return apply(op("where"), some, number(float("nan"), found.dtype, found), found)


def _pick(x: Tensor, axis: int, place: Any) -> Tensor:
    spec = (*(("slice", None, None, None),) * axis, ("int", "?"))
    return apply(op("index"), x, place, spec=spec)
