"""Taylor series of ops: the coefficients of what an op gives, one order after the other.

A value that depends on t is x(t) = x0 + x1 t + x2 t**2 + ...; coefficient 0 is the value itself. An op (but `div`) has
no rule of its own for series: its coefficients follow from the rules that it has already (Griewank and Walther 2008,
"Evaluating Derivatives", chapter 13, has the recurrences that come out).

1. No derivative: all coefficients but the first are zero.
2. Linear in what depends on t: the op is applied to each coefficient.
3. Linear in each of several operands: coefficient k is the convolution, the sum over i + j = k.
4. Anything else gives y(t) with y' = rule(x, x', y), the tangent that `jvp` emits. The operations of that rule are
   series in turn, and coefficient k of y' asks for coefficients up to k of y only: (k + 1) y[k+1] = rule(x, x', y)[k].
   So tanh costs two convolutions, because its slope is 1 - y**2, and sin and cos are found together.

Order K costs a number of operations that grows as K**2; as K**3 where the rule of an op leads to ever new ops (`pow`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dy2st.autodiff.cotangents import conform
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ScalarType, TensorType, is_differentiable, tangent_type
from dy2st.ops.core.base import Op
from dy2st.ops.elementwise.arithmetic import Div
from dy2st.shapes import Dim, symbol

Coefficients = list[Value | None]
"""Those from order 1 on; None is zero."""


class Series(ABC):
    """What depends on t; `at(k)` is its coefficient, None for zero (never of order 0)."""

    active = True

    @abstractmethod
    def at(self, k: int) -> Value | None:
        """Return coefficient k."""

    def value(self) -> Value:
        """Return coefficient 0."""
        found = self.at(0)
        assert found is not None
        return found


class KnownSeries(Series):
    """A series whose coefficients are there."""

    def __init__(self, value: Value, coefficients: Sequence[Value | None] = ()):
        self._all: list[Value | None] = [value, *coefficients]
        self.active = any(c is not None for c in coefficients)

    def at(self, k: int) -> Value | None:
        return self._all[k] if k < len(self._all) else None


class DerivativeSeries(Series):
    """The derivative of a series by t: coefficient k is (k + 1) times coefficient k + 1."""

    def __init__(self, b: Builder, of: Series):
        self._b, self._of = b, of
        self._found: dict[int, Value | None] = {}

    def at(self, k: int) -> Value | None:
        if k not in self._found:
            ahead = self._of.at(k + 1)
            if ahead is None and k == 0:
                ahead = self._b.zeros_like(self._of.value())
            self._found[k] = ahead if ahead is None or k == 0 else self._b.mul(ahead, k + 1)
        return self._found[k]


class ResultSeries(Series):
    """Result number `i` of an op."""

    def __init__(self, of: OpSeries, i: int):
        self._of, self._i, self.active = of, i, of.active

    def at(self, k: int) -> Value | None:
        return self._of.at(k)[self._i]


Memo = dict[Any, "OpSeries"]


class OpSeries:
    """The series of all results of one op, computed as they are asked for."""

    def __init__(
        self,
        b: Builder,
        op: Op,
        attributes: dict[str, Any],
        operands: Sequence[Series],
        memo: Memo,
        outs: Sequence[Value] | None = None,
        types: Sequence[Any] = (),
    ):
        self.b, self.op, self.attributes, self.operands, self._memo, self._types = (
            b, op, attributes, operands, memo, types,
        )  # fmt: skip
        self.active = op.differentiable and any(x.active for x in operands)
        self._found: list[Sequence[Value | None]] = [] if outs is None else [outs]
        self._rule: list[Series | None] | None = None

    def at(self, k: int) -> Sequence[Value | None]:
        """Return coefficient k of each result."""
        while len(self._found) <= k:
            self._found.append(self._next(len(self._found)))
        return self._found[k]

    def tangents(self) -> Sequence[Value | None]:
        """Return coefficient 1 of each result, as the op's rule emits it: no later one needs a series of the rule."""
        outs = cast("Sequence[Value]", self._found[0])
        return self._conformed(self._coefficientwise(1, outs), outs)

    def _next(self, k: int) -> Sequence[Value | None]:
        if k == 0:
            made = self.b.operation(self.op, [x.value() for x in self.operands], self.attributes).results
            for new, type in zip(made, self._types, strict=True):
                self.b.retype(new, type)
            return made
        if not self.active:
            return [None] * len(self._found[0])
        outs = cast("Sequence[Value]", self._found[0])
        on = [i for i, x in enumerate(self.operands) if x.active]
        if isinstance(self.op, Div) and 1 in on:
            return [self._quotient(k)]
        if _linear_together(self.op, on, self.operands, outs):
            return self._conformed(self._coefficientwise(k, outs), outs)
        if set(on) <= set(self.op.linear_in):
            return self._conformed(self._convolution(k, on), outs)
        slope = [None if one is None else one.at(k - 1) for one in self._slope(outs)]
        return self._conformed([one if one is None or k == 1 else self.b.mul(one, 1 / k) for one in slope], outs)

    def _coefficientwise(self, k: int, outs: Sequence[Value]) -> Sequence[Any]:
        """Case 2: what the op does to a tangent it does to each coefficient."""
        tangents = [x.at(k) if x.active else None for x in self.operands]
        if all(t is None for t in tangents):
            return [None] * len(outs)
        made = self.op.jvp(self.b, [x.value() for x in self.operands], tangents, outs, **self.attributes)
        return cast("Sequence[Any]", made) if isinstance(made, (list, tuple)) else [made]

    def _convolution(self, k: int, on: Sequence[int]) -> Sequence[Any]:
        """Case 3: the sum over all ways to take orders of the operands that add up to k."""
        total: list[Any] | None = None
        for orders in _sums(k, len(on)):
            given: list[Any] = [x.value() for x in self.operands]
            for i, order in zip(on, orders, strict=True):
                given[i] = self.operands[i].at(order)
            if any(one is None for one in given):
                continue
            term = self.b.operation(self.op, given, self.attributes).results
            total = term if total is None else [self.b.add(p, q) for p, q in zip(total, term, strict=True)]
        return [None] * len(self._found[0]) if total is None else total

    def _quotient(self, k: int) -> Value | None:
        """Return coefficient k of z = x / y, from that of z y = x."""
        x, y = self.operands
        rest = x.at(k)
        for j in range(1, k + 1):
            factor, before = y.at(j), self._found[k - j][0]
            if factor is not None and before is not None:
                term = self.b.safe_mul(factor, before)
                rest = self.b.neg(term) if rest is None else self.b.sub(rest, term)
        return None if rest is None else self.b.safe_mul(rest, self.b.reciprocal(y.value()))

    def _slope(self, outs: Sequence[Value]) -> list[Series | None]:
        """Case 4: the series of the tangents that the op's rule emits."""
        if self._rule is None:
            self._memo.setdefault(_key(self.op, self.attributes, self.operands), self)
            results: list[Series] = [ResultSeries(self, i) for i in range(len(outs))]
            self._rule = _rule(self.b, self.op, self.attributes, self.operands, results, outs, self._memo)
        return self._rule

    def _conformed(self, found: Sequence[Value | None], outs: Sequence[Value]) -> list[Value | None]:
        return [c if c is None else conform(self.b, c, out) for c, out in zip(found, outs, strict=True)]


def op_series(
    b: Builder, operation: Operation, operands: Sequence[Series], outs: Sequence[Value], order: int
) -> list[Coefficients]:
    """Emit the coefficients 1 to `order` of the results of an operation that gave `outs`.

    Raises AutodiffError for an op that has no rule, with its name.
    """
    assert isinstance(operation.op, Op)
    results = OpSeries(b, operation.op, operation.attributes, operands, {}, outs)
    if order == 1:
        return [[tangent] for tangent in results.tangents()]
    found = [results.at(k) for k in range(1, order + 1)]
    return [[one[i] for one in found] for i in range(len(outs))]


def _linear_together(op: Op, on: Sequence[int], operands: Sequence[Series], outs: Sequence[Value]) -> bool:
    """Return whether the op is linear in all operands that depend on t (`on`) at once.

    What takes or gives lists, tuples and variants only moves things.
    """
    if len(on) == 1 and on[0] in op.linear_in:
        return True
    if op.variadic or (op.linear_together and set(on) <= set(op.linear_together)):
        return True
    values = [*(operands[i].value() for i in on), *outs]
    return any(not isinstance(v.type, TensorType) and is_differentiable(v.type) for v in values)


def _rule(
    b: Builder,
    op: Op,
    attributes: dict[str, Any],
    operands: Sequence[Series],
    results: Sequence[Series],
    outs: Sequence[Value],
    memo: Memo,
) -> list[Series | None]:
    """Return the series of the tangents of an op's results, from the operations that its `jvp` emits."""
    inner = Builder(Block(), None, names=b.names)
    inner.location = b.location
    primals = [x.value() for x in operands]
    known: dict[Value, Series] = {}

    def enter(type: Any, series: Series) -> Value:
        argument = inner.argument(type)
        known[argument] = series
        return argument

    xs = [enter(p.type, x) for p, x in zip(primals, operands, strict=True)]
    ys = [enter(out.type, y) for out, y in zip(outs, results, strict=True)]
    dxs = [
        enter(tangent_type(p.type), DerivativeSeries(b, x)) if x.active else None
        for p, x in zip(primals, operands, strict=True)
    ]
    for name in _symbols([*primals, *outs]):
        if not inner.knows(name):
            inner.provide(name, enter(ScalarType("int", name), KnownSeries(b.scalar(b.extent(name)))))
    made = op.jvp(inner, xs, dxs, ys, **attributes)
    for operation in inner.block.operations:
        given = [known[v] for v in operation.operands]
        of = _made(b, op.name, operation, given, memo)
        known.update({v: ResultSeries(of, i) for i, v in enumerate(operation.results)})
    parts = cast("Sequence[Any]", made) if isinstance(made, (list, tuple)) else [made]
    return [None if part is None else known[part] for part in parts]


def _made(b: Builder, whose: str, operation: Operation, operands: Sequence[Series], memo: Memo) -> OpSeries:
    """Return the series of an operation of a rule; the same op of the same operands is found again."""
    if not isinstance(operation.op, Op) or operation.blocks:
        raise AutodiffError(f"Taylor mode has no rule for '{operation.name}', which the derivative of '{whose}' uses")
    key = _key(operation.op, operation.attributes, operands)
    found = memo.get(key)
    if found is None:
        types = [v.type for v in operation.results]
        found = memo[key] = OpSeries(b, operation.op, operation.attributes, operands, memo, types=types)
    return found


def _key(op: Op, attributes: dict[str, Any], operands: Sequence[Series]) -> Any:
    named = tuple((name, _hashable(value)) for name, value in sorted(attributes.items()))
    return op.name, named, tuple((id(x._of), x._i) if isinstance(x, ResultSeries) else id(x) for x in operands)  # pyright: ignore[reportPrivateUsage]


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return array.dtype.str, array.shape, array.tobytes()
    return type(value), repr(value)


def _symbols(values: Sequence[Value]) -> list[Dim]:
    """Return the symbols in the shapes of tensors, each once."""
    found: dict[str, None] = {}
    for v in values:
        for extent in v.type.shape if isinstance(v.type, TensorType) else ():
            if isinstance(extent, Dim):
                found.update(dict.fromkeys(sorted(extent.symbols())))
    return [symbol(name) for name in found]


def _sums(total: int, parts: int) -> list[tuple[int, ...]]:
    """Return all ways to write `total` as a sum of `parts` numbers that are not negative."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _sums(total - first, parts - 1)]
