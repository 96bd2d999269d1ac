"""Products and extrema of what is put at indices along one axis: `combine_along_axis`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import float64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.ops.elementwise.comparison import select
from dy2st.ops.indexing.along_axis import grid_of, put_samples, refuse_types, refuse_values

_UFUNCS = {"mul": "multiply", "amax": "maximum", "amin": "minimum"}


class CombineAlongAxis(Op):
    """The tensor with `values` combined into its elements at `indices` along `axis`.

    Mode "mul" multiplies, "amax" and "amin" take the extremum, whose derivative equal ones share evenly. The derivative
    of the product is exact also where values are 0.
    """

    name = "combine_along_axis"
    attributes = ("axis", "mode")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, indices: TensorType, values: TensorType, *, axis: int, mode: str) -> TensorType:
        if mode not in _UFUNCS:
            raise ValueError(f"combine_along_axis: mode is {mode!r}, not one of {', '.join(_UFUNCS)}")
        refuse_types(self.name, x, indices, axis)
        refuse_values(self.name, x, indices, values)
        return x

    def eval(self, xp: Any, x: Any, indices: Any, values: Any, *, axis: int, mode: str) -> Any:
        grid = grid_of(xp, x.shape, indices, axis)
        values = xp.broadcast_to(values, grid[axis].shape)
        result = x.copy()
        if mode != "mul" or xp is np:
            getattr(xp, _UFUNCS[mode]).at(result, grid, values)
            return result
        for k in range(values.shape[axis]):  # CuPy's `multiply` has no `at`
            iteration = tuple(slice(k, k + 1) if i == axis else slice(None) for i in range(x.ndim))
            result[tuple(line[iteration] for line in grid)] *= values[iteration]
        return result

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, mode: str) -> Any:  # fmt: skip
        if mode == "mul":
            return _product_tangent(b, primals, tangents, axis)
        return _extremum_tangent(b, primals, tangents, outs[0], axis)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for mode in _UFUNCS:
            yield from put_samples(rng, mode)
        indices, values = np.array([[0, 1, 0, 1, 0]]), np.array([[0.0, 0.0, 2.0, 3.0, 0.0]])
        yield Sample((np.array([[2.0, 3.0]]), indices, values), {"axis": 1, "mode": "mul"})


def _extremum_tangent(b: Builder, primals: Sequence[Value], tangents: Tangents, out: Value, axis: int) -> Value:
    (x, indices, values), (dx, _, dvalues) = primals, tangents
    dtype = x.type.dtype  # type: ignore[union-attr]
    from_x = b.eq(x, out)
    from_values = b.eq(values, b.take_along_axis(out, indices, axis=axis))
    share = {"axis": axis, "mode": "add"}
    count = b.put_along_axis(b.cast(from_x, dtype=dtype), indices, b.cast(from_values, dtype=dtype), **share)
    total = b.zeros_like(x) if dx is None else select(b, from_x, dx, None)
    if dvalues is not None:
        total = b.put_along_axis(total, indices, select(b, from_values, dvalues, None), **share)
    return b.div(total, count)


def _product_tangent(b: Builder, primals: Sequence[Value], tangents: Tangents, axis: int) -> Any:
    (x, indices, values), (dx, _, dvalues) = primals, tangents
    total = None
    if dx is not None:
        total = b.mul(dx, b.combine_along_axis(b.ones_like(x), indices, values, axis=axis, mode="mul"))
    if dvalues is None:
        return total
    places = _counted_from_front(b, x, indices, axis)
    iterations = b.argsort(places, axis=axis, descending=False)
    places = b.take_along_axis(places, iterations, axis=axis)
    line = b.take_along_axis(values, iterations, axis=axis)
    others = b.mul(_product_before(b, places, line, axis, False), _product_before(b, places, line, axis, True))
    slopes = b.mul(others, b.take_along_axis(x, places, axis=axis))
    terms = b.mul(b.take_along_axis(dvalues, iterations, axis=axis), slopes)
    base = b.zeros_like(x) if total is None else total
    return b.put_along_axis(base, places, terms, axis=axis, mode="add")


def _counted_from_front(b: Builder, x: Value, indices: Value, axis: int) -> Value:
    dtype = indices.type.dtype  # type: ignore[union-attr]
    extent = b.shape(x)[axis]
    added = b.scalar_to_tensor(extent, dtype=dtype) if isinstance(extent, Value) else extent
    return b.where(b.lt(indices, 0), b.add(indices, added), indices)


def _product_before(b: Builder, places: Value, line: Value, axis: int, reverse: bool) -> Value:
    """The product, for each element of `line`, of those before it (after it with `reverse`) whose place is the same.

    Equal places stand side by side. A scan restarts at 1 where the place changes; the stretch that the line begins
    with, which no change precedes, is an exclusive product.
    """
    number = b.cast(places, dtype=float64)
    following = b.linear_scan(b.zeros_like(number), number, axis=axis, reverse=not reverse)
    same = b.eq(number, following)
    changes = b.cast(b.logical_not(same), dtype=line.type.dtype)  # type: ignore[union-attr]
    first = b.eq(b.sub(b.cumsum(changes, axis=axis, reverse=reverse), changes), 0)
    opening = b.cumprod(select(b, first, line, None), axis=axis, exclusive=True, reverse=reverse)
    later = b.linear_scan(select(b, same, line, None), changes, axis=axis, reverse=reverse)
    return b.add(select(b, first, opening, None), later)
