"""Reductions over axes: sum, mean, prod, max, min, all, any, argmax, argmin, logsumexp.

`axis` is a tuple of axes that are not negative; reducing over all of them gives a 0-D tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import DType, bool_, float16, int64, of_array, true_divide
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents, as_array
from dy2st.ops.elementwise.comparison import select
from dy2st.shapes import Shape, product


class Reduction(Op):
    """A reduction of one tensor over the axes of the attribute `axis`."""

    abstract = True
    attributes = ("axis", "keepdim")
    fresh = True

    def result_dtype(self, x: DType) -> DType:
        """Return the dtype of the result for operands of this dtype."""
        return x

    def infer(self, x: TensorType, *, axis: tuple[int, ...], keepdim: bool) -> TensorType:
        return TensorType(self.result_dtype(x.dtype), reduced(x.shape, axis, keepdim))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        x = rng.uniform(0.5, 2, size=(2, 3, 4))
        for axis, keepdim in (((0, 1, 2), False), ((1,), True), ((0, 2), False), ((2,), False), ((), False)):
            yield Sample((x,), {"axis": axis, "keepdim": keepdim})
        yield Sample((rng.uniform(0.5, 2, size=()),), {"axis": (), "keepdim": False})
        yield Sample((np.zeros((0, 2)),), {"axis": (1,), "keepdim": False})


def reduced(shape: Shape, axis: tuple[int, ...], keepdim: bool) -> Shape:
    """Return the shape that a reduction over `axis` leaves."""
    if keepdim:
        return tuple(1 if i in axis else e for i, e in enumerate(shape))
    return tuple(e for i, e in enumerate(shape) if i not in axis)


def kept(b: Builder, result: Value, x: Value, axis: tuple[int, ...], keepdim: bool) -> Value:
    """Emit `result`, a reduction of `x` (whose value is not used), with its reduced axes as extents of 1."""
    if keepdim or not axis:
        return result
    return b.shaped("reshape", [result], [1 if i in axis else e for i, e in enumerate(b.shape(x))])


def spread(b: Builder, result: Value, x: Value, axis: tuple[int, ...], keepdim: bool) -> Value:
    """Emit `result`, a reduction of `x` (whose value is not used), repeated to the shape of `x`."""
    return b.broadcast_to(kept(b, result, x, axis, keepdim), b.shape(x))


class Sum(Reduction):
    """The sum; of booleans and integers in int64, of float16 accumulated in float32."""

    name = "sum"
    amp = "high"
    computes_in = ("float16", "float32")
    monoid = "add"
    linear_in = (0,)

    def result_dtype(self, x: DType) -> DType:
        return int64 if x.kind in "biu" else x

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        return accumulated(xp, xp.sum, x, self.result_dtype(of_array(x)), axis=axis, keepdims=keepdim)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: tuple[int, ...], keepdim: bool) -> Tangents:  # fmt: skip
        return [spread(b, cts[0], operands[0], axis, keepdim)]  # type: ignore[arg-type]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.zeros((0, 2)),), {"axis": (0,), "keepdim": False})
        yield Sample((np.arange(6, dtype=np.int32).reshape(2, 3),), {"axis": (0,), "keepdim": False})
        yield Sample((np.array([True, True, False]),), {"axis": (0,), "keepdim": True})
        yield Sample((np.ones(4096, np.float16),), {"axis": (0,), "keepdim": False}, differentiate=False)


class Mean(Reduction):
    """The mean; NaN over no elements. Booleans and integers give float32."""

    name = "mean"
    amp = "high"
    computes_in = ("float16", "float32")
    monoid = "add"
    linear_in = (0,)

    def result_dtype(self, x: DType) -> DType:
        return true_divide(x)

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        dtype = self.result_dtype(of_array(x))
        exact = x if x.dtype.kind in "fc" else x.astype(xp.float64)
        total = accumulated(xp, xp.sum, exact, of_array(exact), axis=axis, keepdims=keepdim, narrow=False)
        count = 1
        for i in axis:
            count *= x.shape[i]
        if total.dtype.kind == "c":  # each part: a quotient of complex numbers has NaN beside infinity
            made = xp.empty_like(total)
            made.real, made.imag = total.real / count, total.imag / count
            return made.astype(dtype.numpy)
        return as_array(xp, xp.true_divide(total, xp.asarray(count, total.dtype)).astype(dtype.numpy))

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: tuple[int, ...], keepdim: bool) -> Tangents:  # fmt: skip
        total = spread(b, cts[0], operands[0], axis, keepdim)  # type: ignore[arg-type]
        assert isinstance(total.type, TensorType)
        extents = total.type.shape
        count = b.extent(product(tuple(extents[i] for i in axis)))
        return [b.div(total, b.scalar_to_tensor(count, dtype=total.type.dtype) if isinstance(count, Value) else count)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.arange(6).reshape(2, 3),), {"axis": (0,), "keepdim": False})


def accumulated(xp: Any, function: Any, x: Any, dtype: DType, *, narrow: bool = True, **keywords: Any) -> Any:
    """Run a sum or product in `dtype`, float16 in float32; `narrow` brings that back to float16."""
    if dtype is float16:
        total = as_array(xp, function(x, dtype=xp.float32, **keywords))
        return total.astype(xp.float16) if narrow else total
    if function is np.sum:  # what it calls, after checks that take as long as a small sum
        function = np.add.reduce
    return as_array(xp, function(x, dtype=dtype.numpy, **keywords))


class Prod(Reduction):
    """The product; of booleans and integers in int64. The derivative is exact also where elements are 0."""

    name = "prod"
    amp = "high"
    computes_in = ("float16", "float32")
    monoid = "mul"

    def result_dtype(self, x: DType) -> DType:
        return int64 if x.kind in "biu" else x

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        return accumulated(xp, xp.prod, x, self.result_dtype(of_array(x)), axis=axis, keepdims=keepdim)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: tuple[int, ...], keepdim: bool) -> Any:  # fmt: skip
        terms = b.mul(tangents[0], _product_of_others(b, primals[0], axis))
        return b.sum(terms, axis=axis, keepdim=keepdim)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([[0.0, 2.0, 3.0], [0.0, 4.0, 0.0]]),), {"axis": (1,), "keepdim": False})
        yield Sample((np.array([[0.0, 2.0, 3.0], [1.5, 4.0, 2.0]]),), {"axis": (0, 1), "keepdim": False})
        yield Sample((np.array([2, 3], np.int32),), {"axis": (0,), "keepdim": False})


def _product_of_others(b: Builder, x: Value, axis: tuple[int, ...]) -> Value:
    """The product, for each element, of the other elements along `axis`: before it times after it, axis by axis."""
    if not axis:
        return b.ones_like(x)
    first, rest = axis[0], axis[1:]
    before = b.cumprod(x, axis=first, exclusive=True, reverse=False)
    after = b.cumprod(x, axis=first, exclusive=True, reverse=True)
    others = b.mul(before, after)
    if not rest:
        return others
    line = b.prod(x, axis=(first,), keepdim=True)
    return b.mul(others, b.broadcast_to(_product_of_others(b, line, rest), b.shape(x)))


class _Extremum(Reduction):
    abstract = True
    defined_on = REAL_NUMBERS
    may_raise = True
    native_in_eager = True
    function: ClassVar[str]

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return _can_be_empty(types[0].shape, attributes["axis"])

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        if not axis:
            return x.copy()
        refuse_empty(self.name, x.shape, axis)
        return as_array(xp, getattr(xp, self.function)(x, axis=axis, keepdims=keepdim))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: tuple[int, ...], keepdim: bool) -> Any:  # fmt: skip
        (x,), (dx,), (out,) = primals, tangents, outs
        reached = b.logical_or(b.eq(x, spread(b, out, x, axis, keepdim)), b.isnan(x))
        weight = b.cast(reached, dtype=x.type.dtype)  # type: ignore[union-attr]
        total = b.sum(select(b, reached, dx, None), axis=axis, keepdim=keepdim)
        return b.div(total, b.sum(weight, axis=axis, keepdim=keepdim))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([[3, 1, 2]]),), {"axis": (1,), "keepdim": False})


class Max(_Extremum):
    """The largest element, NaN if one is; equal ones share the derivative evenly. ValueError over no elements."""

    name = "max"
    computes_in = ("float16", "float32")
    monoid = "max"
    function = "max"


class Top(Max):
    """The largest element, NaN if one is; over no elements what is less than all: -inf, False, the least integer."""

    name = "top"
    computes_in = ("float16", "float32")
    monoid = "max"
    may_raise = False

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return False

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        if all(x.shape[a] for a in axis):
            return super().eval(xp, x, axis=axis, keepdim=keepdim)
        dtype = of_array(x)
        least = False if dtype.is_bool else -np.inf if dtype.is_floating else np.iinfo(x.dtype).min
        return xp.full(reduced(x.shape, axis, keepdim), least, x.dtype)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.zeros((2, 0)),), {"axis": (1,), "keepdim": True}, differentiate=False)


class Min(_Extremum):
    """The smallest element, NaN if one is; equal ones share the derivative evenly. ValueError over no elements."""

    name = "min"
    computes_in = ("float16", "float32")
    monoid = "min"
    function = "min"


def _can_be_empty(shape: Sequence[Any], axes: Iterable[int]) -> bool:
    """Return whether an axis may have no elements, as far as types tell."""
    return any(not isinstance(shape[a], int) or shape[a] == 0 for a in axes)


def refuse_empty(name: str, shape: tuple[int, ...], axis: tuple[int, ...]) -> None:
    """Raise ValueError where a reduction that needs an element has none."""
    for i in axis:
        if shape[i] == 0:
            raise ValueError(f"{name}: axis {i} of a tensor of shape {list(shape)} is empty")


class _Quantifier(Reduction):
    abstract = True
    differentiable = False

    def result_dtype(self, x: DType) -> DType:
        return bool_

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        return as_array(xp, getattr(xp, self.name)(x, axis=axis, keepdims=keepdim))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.zeros((0, 2), bool),), {"axis": (0,), "keepdim": True})


class AllOf(_Quantifier):
    """True where no element is zero."""

    name = "all"
    monoid = "and"


class AnyOf(_Quantifier):
    """True where some element is not zero."""

    name = "any"
    monoid = "or"


class _ArgExtremum(Op):
    abstract = True
    defined_on = REAL_NUMBERS
    attributes = ("axis", "keepdim")
    differentiable = False
    may_raise = True
    fresh = True
    native_in_eager = True

    def infer(self, x: TensorType, *, axis: int | None, keepdim: bool) -> TensorType:
        axes = tuple(range(x.rank)) if axis is None else (axis,)
        return TensorType(int64, reduced(x.shape, axes, keepdim))

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        axis = attributes["axis"]
        return _can_be_empty(types[0].shape, range(types[0].rank) if axis is None else (axis,))

    def eval(self, xp: Any, x: Any, *, axis: int | None, keepdim: bool) -> Any:
        refuse_empty(self.name, x.shape, tuple(range(x.ndim)) if axis is None else (axis,))
        found = as_array(xp, getattr(xp, self.name)(x, axis=axis)).astype(xp.int64)
        if not keepdim:
            return found
        return found.reshape((1,) * x.ndim) if axis is None else xp.expand_dims(found, axis)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        x = rng.normal(size=(2, 3, 4))
        for axis, keepdim in ((None, False), (None, True), (1, False), (2, True)):
            yield Sample((x,), {"axis": axis, "keepdim": keepdim})
        yield Sample((np.array(2.0),), {"axis": None, "keepdim": False})
        yield Sample((np.zeros((0, 2)),), {"axis": 1, "keepdim": False})


class ArgMax(_ArgExtremum):
    """The index of the largest element, the first of equal ones; with axis None, in row-major order."""

    name = "argmax"


class ArgMin(_ArgExtremum):
    """The index of the smallest element, the first of equal ones; with axis None, in row-major order."""

    name = "argmin"


class LogSumExp(Reduction):
    """log(sum(e ** x)) without overflow; -inf over no elements."""

    native_in_eager = True
    name = "logsumexp"
    amp = "high"
    defined_on = "fc"

    def eval(self, xp: Any, x: Any, *, axis: tuple[int, ...], keepdim: bool) -> Any:
        if not axis or x.size == 0:
            return as_array(xp, xp.log(xp.sum(xp.exp(x), axis=axis, keepdims=keepdim)))
        top = as_array(xp, xp.max(x, axis=axis, keepdims=True))
        finite = xp.where(xp.isfinite(top), top, xp.zeros((), x.dtype))
        total = accumulated(xp, xp.sum, xp.exp(x - finite), of_array(x), axis=axis, keepdims=True)
        out = as_array(xp, xp.log(total) + finite)
        return out if keepdim else out.reshape(reduced(x.shape, axis, keepdim))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: tuple[int, ...], keepdim: bool) -> Any:  # fmt: skip
        (x,), (out,) = primals, outs
        finite = b.where(b.isfinite(out), out, b.zeros_like(out))
        weights = b.exp(b.sub(x, spread(b, finite, x, axis, keepdim)))
        return b.sum(b.safe_mul(tangents[0], weights), axis=axis, keepdim=keepdim)
