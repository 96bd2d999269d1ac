"""Counts of elements in cells, the most frequent elements, and quantiles that leave NaN out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.functions.core.operands import (
    all_axes,
    cast_to,
    constant,
    floating,
    one_axis,
    op,
    ordered,
    ordered_floating,
    tensor,
)
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import where
from dy2st.functions.math.search import searchsorted
from dy2st.functions.shape.broadcasting import expand
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import arange, full, linspace, zeros
from dy2st.functions.shape.gather_scatter import put_along_axis, take_along_axis
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


def histogram(
    input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0, weight: Any = None, density: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return how many elements fall into each of `bins` cells of equal width from min to max, as int64.

    Where min and max are equal, the cells reach from the least to the largest element; elements outside are not
    counted. With `weight` the weights are summed, with `density` the result is a density; both are floats.

    >>> import dy2st as paddle
    >>> paddle.histogram(paddle.to_tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
    [0, 2, 1, 0]
    """
    x = reshape(ordered_floating(input, "histogram"), [-1])
    low, high = _bounds(x, bins, min, max, "histogram")
    place = math.floor((x - low) / (high - low) * float(bins))
    inside = (x >= low).logical_and(x <= high)
    place = cast_to(math.minimum(where(inside, place, 0.0), float(bins - 1)), dtypes.int64)
    if weight is None:
        value = cast_to(inside, x.dtype if density else dtypes.int64)
    else:
        value = where(inside, reshape(floating(weight, "histogram"), [-1]), 0.0)
    counts = put_along_axis(zeros([bins], value.dtype), place, value, 0, "add")
    if not density:
        return counts
    return counts / (reduction.sum(counts) * ((high - low) / float(bins)))


def histogram_bin_edges(
    input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0, name: str | None = None
) -> Tensor:
    """Return the bins + 1 bounds of the cells that `histogram` counts in."""
    x = reshape(ordered_floating(input, "histogram_bin_edges"), [-1])
    low, high = _bounds(x, bins, min, max, "histogram_bin_edges")
    return low + (high - low) * linspace(0.0, 1.0, bins + 1, x.dtype)


def histogramdd(
    x: Any, bins: Any = 10, ranges: Sequence[float] | None = None, density: bool = False, weights: Any = None,
    name: str | None = None,
) -> tuple[Tensor, list[Tensor]]:  # fmt: skip
    """Return how many points [..., d] fall into each cell of a grid, as floats, and the bounds of the cells by axis.

    `bins` is the number of cells along each axis, or the bounds themselves; `ranges` has the least and the largest for
    each axis. With `weights` [...] those are summed, with `density` the result is a density.
    """
    x = ordered_floating(x, "histogramdd")
    points = reshape(x, [-1, x.shape[-1]])
    axes = int(points.shape[1])
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * axes
    spans = [(0.0, 0.0)] * axes if ranges is None else [(ranges[2 * i], ranges[2 * i + 1]) for i in range(axes)]
    if len(each) != axes or (ranges is not None and len(ranges) != 2 * axes):
        raise ValueError(f"histogramdd: {len(each)} bins for points of {axes} coordinates")
    bounds = [
        tensor(b, "histogramdd", x.dtype)
        if isinstance(b, Tensor)
        else histogram_bin_edges(points[:, i], b, float(spans[i][0]), float(spans[i][1]))
        for i, b in enumerate(each)
    ]
    place = zeros([points.shape[0]], "int64")
    inside = place == 0
    for i, edges in enumerate(bounds):
        column, count = points[:, i], edges.shape[0] - 1
        cell = math.minimum(searchsorted(edges, column, right=True) - 1, count - 1)  # the last cell has both bounds
        inside = inside & (column >= edges[0]) & (column <= edges[-1])
        place = place * count + math.maximum(cell, 0)
    value = cast_to(inside, x.dtype)
    value = value if weights is None else value * reshape(tensor(weights, "histogramdd", x.dtype), [-1])
    shape = [edges.shape[0] - 1 for edges in bounds]
    total = reshape(put_along_axis(zeros([prod(shape)], x.dtype), place, value, 0, "add"), shape)
    if not density:
        return total, bounds
    for i, edges in enumerate(bounds):
        total = total / reshape(edges[1:] - edges[:-1], [-1 if i == j else 1 for j in range(axes)])
    return total / reduction.sum(value), bounds


def _bounds(x: Tensor, bins: int, low: float, high: float, name: str) -> tuple[Tensor, Tensor]:
    if bins < 1:
        raise ValueError(f"{name}: bins must be positive, not {bins}")
    if low > high:
        raise ValueError(f"{name}: min {low} is above max {high}")
    empty = isinstance(x.shape[0], int) and x.shape[0] == 0
    if low != high or empty:
        spread = (low, high) if low != high else (low, low + 1.0)
        first, last = (tensor(float(e), name, x.dtype) for e in spread)
        return first, last
    first, last = reduction.min(x), reduction.max(x)
    same = first == last
    return where(same, first - 0.5, first), where(same, last + 0.5, last)


def nanquantile(x: Any, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Tensor:
    """Return quantiles over an axis (all when None) of the elements that are no NaN; NaN where all are.

    `q` is a number, or a list of them, which gives a first axis. `interpolation` is "linear", "lower", "higher",
    "midpoint" or "nearest".
    """
    if isinstance(q, Tensor):
        q = q.tolist()
    if isinstance(q, (list, tuple)):
        return stack([nanquantile(x, one, axis, keepdim, interpolation) for one in q], 0)
    if not 0 <= q <= 1:
        raise ValueError(f"nanquantile: q must be from 0 to 1, not {q}")
    if interpolation not in _BETWEEN:
        raise ValueError(f"nanquantile: interpolation is {interpolation!r}, not one of {', '.join(_BETWEEN)}")
    x = ordered_floating(x, "nanquantile")
    axes = all_axes(axis, x.ndim, "nanquantile")
    rest = [i for i in range(x.ndim) if i not in axes]
    line = transpose(x, [*rest, *axes]).flatten(len(rest))
    found = _of_last_axis(line, q, _BETWEEN[interpolation])
    return reshape(found, [1 if i in axes else e for i, e in enumerate(x.shape)]) if keepdim else found


_BETWEEN: dict[str, Any] = {
    "linear": lambda place: place,
    "lower": math.floor,
    "higher": math.ceil,
    "midpoint": lambda place: (math.floor(place) + math.ceil(place)) * 0.5,
    "nearest": lambda place: _half_to_even(place),
}
"""Where to look, for a quantile that falls on a place between elements."""


def _half_to_even(place: Tensor) -> Tensor:
    """Return the nearest whole numbers, of two the even one."""
    low = math.floor(place)
    share = place - low
    return low + where(share == 0.5, low % 2.0, cast_to(share > 0.5, place.dtype))


def nanmedian(x: Any, axis: Any = None, keepdim: bool = False, mode: str = "avg", name: str | None = None) -> Any:
    """Return the middle of the elements that are no NaN: by mode "avg" the mean of two, by "min" the lower one.

    Mode "min" along one axis gives the place of the element too, the first of several.
    """
    if mode not in ("avg", "min"):
        raise ValueError(f"nanmedian: mode is {mode!r}, not 'avg' or 'min'")
    if mode == "avg" or axis is None:
        return nanquantile(x, 0.5, axis, keepdim, "linear" if mode == "avg" else "lower")
    x = ordered(x, "nanmedian")
    value = nanquantile(x, 0.5, axis, True, "lower")
    place = reduction.argmax(cast_to((x == value) | (value != value), dtypes.int32), axis, keepdim)
    return (value, place) if keepdim else (value.squeeze(axis), place)


def _of_last_axis(x: Tensor, q: float, between: Any) -> Tensor:
    """Return the quantile of each row without its NaN: sorting puts those last."""
    ordered = apply(op("sort"), x, axis=x.ndim - 1, descending=False)
    count = reduction.sum(cast_to(x == x, dtypes.int64), -1, keepdim=True)
    if not isinstance(x.shape[-1], int) or x.shape[-1] == 0:  # of nothing there is one element to take
        ordered = concat([ordered, full([*x.shape[:-1], 1], float("nan"), x.dtype)], -1)
    last = math.maximum(count - 1, 0)
    place = between(cast_to(last, dtypes.float64) * q)
    low = math.floor(place)
    share = cast_to(place - low, x.dtype)
    below, above = (
        take_along_axis(ordered, math.minimum(cast_to(low, dtypes.int64) + shift, last), -1) for shift in (0, 1)
    )
    found = where(share == 0, below, below + (above - below) * share)
    return reshape(where(count == 0, float("nan"), found), x.shape[:-1])


def mode(x: Any, axis: int = -1, keepdim: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the most frequent element along an axis (the least of several) and the place of its last occurrence."""
    x = ordered(x, "mode")
    axis = one_axis(axis, x.ndim, "mode")
    moved = x.moveaxis(axis, -1)
    in_order = apply(op("sort"), moved, axis=moved.ndim - 1, descending=False)
    counts = reduction.sum(cast_to(in_order.unsqueeze(-1) == in_order.unsqueeze(-2), dtypes.int64), -1)
    best = reduction.argmax(counts, -1, keepdim=True)
    numbers = expand(arange(moved.shape[-1]), moved.shape)
    found = moved == take_along_axis(in_order, best, -1)
    place = reduction.max(where(found, numbers, constant(np.asarray(-1, np.int64))), -1, True)
    value = take_along_axis(moved, place, -1)  # the derivative goes to the place that is told
    value, place = (t.moveaxis(-1, axis) for t in (value, place))
    return (value, place) if keepdim else (value.squeeze(axis), place.squeeze(axis))
