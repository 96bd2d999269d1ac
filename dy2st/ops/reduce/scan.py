"""Running reductions along one axis: cumsum, cumprod, cummax, cummin, and `linear_scan`, a linear recurrence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import DType, float16, int64, of_array
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REAL_NUMBERS
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents


def _accumulator(x: DType) -> DType:
    return int64 if x.kind in "biu" else x


def _run(xp: Any, function: Any, x: Any, axis: int, reverse: bool) -> Any:
    """Run NumPy's cumsum or cumprod, from the end with `reverse`; float16 in float32, integers in int64."""
    dtype = _accumulator(of_array(x))
    wide = xp.float32 if dtype is float16 else dtype.numpy
    source = xp.flip(x, axis) if reverse else x
    total = function(source, axis=axis, dtype=wide).astype(dtype.numpy, copy=False)
    return xp.flip(total, axis) if reverse else total


class CumSum(Op):
    """The sums of the elements up to each one, along `axis`; with `reverse`, from each one to the end."""

    native_in_eager = True
    name = "cumsum"
    amp = "high"
    attributes = ("axis", "reverse")
    linear_in = (0,)
    fresh = True

    def infer(self, x: TensorType, *, axis: int, reverse: bool) -> TensorType:
        return TensorType(_accumulator(x.dtype), x.shape)

    def eval(self, xp: Any, x: Any, *, axis: int, reverse: bool) -> Any:
        return _run(xp, xp.cumsum, x, axis, reverse)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, reverse: bool) -> Tangents:  # fmt: skip
        return [b.cumsum(cts[0], axis=axis, reverse=not reverse)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for axis, reverse in ((0, False), (1, True)):
            yield Sample((rng.normal(size=(2, 3)),), {"axis": axis, "reverse": reverse})
            yield Sample((np.zeros((0, 2)),), {"axis": axis, "reverse": reverse})
        yield Sample((np.arange(3, dtype=np.int32),), {"axis": 0, "reverse": False})


class CumProd(Op):
    """The products of the elements up to each one, along `axis`.

    With `exclusive`, of those before it (1 for the first); with `reverse`, counted from the end. The derivative is
    exact also where elements are 0.
    """

    native_in_eager = True
    name = "cumprod"
    amp = "high"
    attributes = ("axis", "exclusive", "reverse")
    fresh = True

    def infer(self, x: TensorType, *, axis: int, exclusive: bool, reverse: bool) -> TensorType:
        return TensorType(_accumulator(x.dtype), x.shape)

    def eval(self, xp: Any, x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
        total = _run(xp, xp.cumprod, x, axis, reverse)
        if not exclusive or not x.shape[axis]:
            return total
        one = xp.ones_like(total[_along(x.ndim, axis, slice(0, 1))])
        if reverse:
            return xp.concatenate([total[_along(x.ndim, axis, slice(1, None))], one], axis=axis)
        return xp.concatenate([one, total[_along(x.ndim, axis, slice(0, -1))]], axis=axis)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, exclusive: bool, reverse: bool) -> Any:  # fmt: skip
        (x,), (dx,) = primals, tangents
        before = outs[0] if exclusive else b.cumprod(x, axis=axis, exclusive=True, reverse=reverse)
        new = b.mul(before, dx)
        carried = b.linear_scan(x, new, axis=axis, reverse=reverse)
        return carried if exclusive else b.add(new, b.mul(x, carried))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for exclusive in (False, True):
            for axis, reverse in ((0, False), (1, True)):
                attributes = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
                yield Sample((rng.normal(size=(2, 4)),), attributes)
                yield Sample((np.array([[2.0, 0.0, 3.0, 0.0], [0.0, 1.0, 2.0, 3.0]]),), attributes)
                yield Sample((np.zeros((0, 2)),), attributes)
        yield Sample((np.array([2, 3], np.int32),), {"axis": 0, "exclusive": True, "reverse": False})


class LinearScan(Op):
    """The states e[0] = 0, e[k + 1] = a[k] * e[k] + c[k] along `axis`; with `reverse`, from the end.

    The last a and c do not enter. It is what derivatives of running products are made of, and its own transpose in c
    but for the direction.
    """

    native_in_eager = True
    name = "linear_scan"
    attributes = ("axis", "reverse")
    linear_in = (1,)
    fresh = True

    def infer(self, a: TensorType, c: TensorType, *, axis: int, reverse: bool) -> TensorType:
        if a != c:
            raise ValueError(f"linear_scan needs operands of one type, not {a} and {c}")
        return c

    def eval(self, xp: Any, a: Any, c: Any, *, axis: int, reverse: bool) -> Any:
        a, c = xp.broadcast_arrays(a, c)
        states = xp.zeros(c.shape, c.dtype)
        iterations = range(c.shape[axis] - 1, 0, -1) if reverse else range(c.shape[axis] - 1)
        for k in iterations:
            at, after = _along(c.ndim, axis, k), _along(c.ndim, axis, k - 1 if reverse else k + 1)
            states[after] = a[at] * states[at] + c[at]
        return states

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int, reverse: bool) -> Any:  # fmt: skip
        (a, _), (da, dc) = primals, tangents
        new = None if da is None else b.mul(da, outs[0])
        if dc is not None:
            new = dc if new is None else b.add(new, dc)
        return b.linear_scan(a, new, axis=axis, reverse=reverse)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, reverse: bool) -> Tangents:  # fmt: skip
        return [None, b.linear_scan(operands[0], cts[0], axis=axis, reverse=not reverse)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for axis, reverse in ((0, False), (1, True)):
            attributes = {"axis": axis, "reverse": reverse}
            yield Sample((rng.normal(size=(3, 4)), rng.normal(size=(3, 4))), attributes)
            yield Sample((np.zeros((0, 2)), np.zeros((0, 2))), attributes)


def _along(rank: int, axis: int, index: Any) -> tuple[Any, ...]:
    return tuple(index if i == axis else slice(None) for i in range(rank))


class _CumExtremum(Op):
    native_in_eager = True
    abstract = True
    defined_on = REAL_NUMBERS
    attributes = ("axis",)
    fresh = True
    larger: ClassVar[bool]

    def infer(self, x: TensorType, *, axis: int) -> tuple[TensorType, TensorType]:
        return x, TensorType(int64, x.shape)

    def eval(self, xp: Any, x: Any, *, axis: int) -> tuple[Any, Any]:
        """Take the best of ever longer stretches: after the iteration with step s, each element has seen 2 s
        elements.
        """
        values = x.copy()
        line = xp.arange(x.shape[axis], dtype=xp.int64)
        places = line.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
        indices = xp.broadcast_to(places, x.shape).copy()
        step = 1
        while step < x.shape[axis]:
            late, early = _along(x.ndim, axis, slice(step, None)), _along(x.ndim, axis, slice(None, -step))
            mine, theirs = values[late], values[early]
            earlier = theirs > mine if self.larger else theirs < mine
            earlier = (earlier | (theirs != theirs)) & (mine == mine)
            indices[late] = xp.where(earlier, indices[early], indices[late])
            values[late] = xp.where(earlier, theirs, mine)
            step *= 2
        return values, indices

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, axis: int) -> Any:  # fmt: skip
        return [b.take_along_axis(tangents[0], outs[1], axis=axis), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for axis in (0, 1):
            yield Sample((rng.normal(size=(3, 5)),), {"axis": axis})
            yield Sample((np.zeros((0, 2)),), {"axis": axis})
        yield Sample((np.array([1, 3, 2, 3]),), {"axis": 0})


class CumMax(_CumExtremum):
    """The largest element up to each one, NaN from the first NaN on, and its index, the last of equal ones."""

    name = "cummax"
    larger = True


class CumMin(_CumExtremum):
    """The smallest element up to each one, NaN from the first NaN on, and its index, the last of equal ones."""

    name = "cummin"
    larger = False
