"""How many iterations loops may run at most, as far as a Program and its inputs tell before a run.

A `while` is told where its test fails at the latest once a number that each iteration raises (or lowers) by the same
has reached one that no iteration changes: `while t < x.shape[0]`, a `for` with a `break`. Nothing is promised of
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.ir.literals import is_array
from dy2st.ir.program import Operation, Program, Value
from dy2st.ir.types import ScalarType
from dy2st.ops.control.scalar import Arithmetic
from dy2st.shapes import Dim, Extent, substituted

_FAR = 2.0**62
"""What goes further, or is no number, is not told."""
_DEEP = 8
"""Of so many operations in a row a number is made that is still looked for."""
_Outer = Mapping[Value, Value]
"""The operands that arguments of branches stand for."""


class KnownNumbers:
    """What is known of numbers, tensors of one element among them, before a run; `symbols` are extents of inputs."""

    def __init__(self, program: Program, inputs: Sequence[Any], symbols: Mapping[str, int]):
        self.symbols = dict(symbols)
        self._extents: dict[Dim, tuple[int | None, int]] = {}
        """What extents are known to be, and how many symbols were known when that was looked for."""
        pairs = zip(program.block.arguments, inputs, strict=True)
        self._known: dict[Value, float] = {v: x.item() if is_array(x) else x for v, x in pairs if _is_number(x)}

    def of(self, value: Value, depth: int = 0) -> float | None:
        """Return what a value is known to be, or None."""
        if value in self._known:
            return self._known[value]
        t, made = value.type, value.operation
        if isinstance(t, ScalarType) and t.extent is not None and (extent := self.extent(t.extent)) is not None:
            return extent
        if made is None or depth > _DEEP:
            return None
        if made.op.converts:
            return self.of(made.operands[0], depth + 1)
        if isinstance(made.op, Arithmetic):
            a, b = (self.of(operand, depth + 1) for operand in made.operands)
            return None if a is None or b is None else made.op.eval(np, a, b)
        given = made.attributes["value"] if made.op.is_constant else None
        if is_array(given):
            return given.item() if _is_number(given) else None
        return given

    def extent(self, extent: Extent) -> int | None:
        """Return what an extent is known to be, or None."""
        if isinstance(extent, int):
            return extent
        found, known = self._extents.get(extent, (None, -1))
        if found is None and known < len(self.symbols):  # with more symbols there may be an answer
            number = substituted(extent, self.symbols)
            found = number if isinstance(number, int) else None
            self._extents[extent] = found, len(self.symbols)
        return found

    def note(self, values: Sequence[Value], operands: Sequence[Value]) -> None:
        """Note that values are what operands are."""
        for value, operand in zip(values, operands, strict=True):
            found = self.of(operand)
            if found is not None:
                self._known[value] = found

    def iterations(self, loop: Operation) -> float:
        """Return the most iterations of a loop; infinite where nothing tells. What it counts up to is known from then
        on.
        """
        if loop.op.is_counted:
            count = self.of(loop.operands[0])
            return math.inf if count is None else max(count, 0)
        if not loop.op.is_loop:
            return math.inf
        counts = [count for test in _tests(loop.blocks[0].results[0]) for count in self._counts(loop, *test)]
        if not counts:
            return math.inf
        iterations, index, last = min(counts)
        self._known.setdefault(loop.results[index], last)
        return iterations

    def _counts(self, loop: Operation, low: Value, high: Value) -> Iterator[tuple[float, int, float]]:
        """Give turns, the place of the counter and its last value, where an iteration follows while `low` is below
        `high`.
        """
        for counter, limit, direction in ((low, high, 1), (high, low, -1)):
            found, bound = _counter(loop, counter), self._outside(loop, limit)
            if found is None or bound is None:
                continue
            index, by = found
            step, first = self._outside(loop, by[0]), self.of(loop.operands[1 + index])
            if step is None or first is None or not abs(bound - first) < _FAR:
                continue
            if step * by[1] * direction > 0:
                iterations = max(1.0, math.ceil((bound - first) / (step * by[1])))
                yield iterations, index, first + iterations * step * by[1]

    def _outside(self, loop: Operation, value: Value) -> float | None:
        """Return what a value inside of a loop is known to be, where no iteration changes it."""
        arguments = loop.blocks[0].arguments
        if value.operation is not None and value.operation.op.converts:
            return self._outside(loop, value.operation.operands[0])
        if value not in arguments:
            return self.of(value)
        at = arguments.index(value)
        return None if at < loop.attributes["carried"] else self.of(loop.operands[1 + at])


def _is_number(x: Any) -> bool:
    if is_array(x):
        return x.size == 1 and x.dtype.kind in "biufV"
    return isinstance(x, (int, float)) and abs(x) < _FAR


def _tests(test: Value) -> Iterator[tuple[Value, Value]]:
    """Give comparisons that all hold where a value is true, each as what is smaller and what is larger."""
    pending: list[tuple[Value, _Outer]] = [(test, {})]
    while pending:
        value, outer = pending.pop()
        value = outer.get(value, value)
        made = value.operation
        if made is None:
            continue
        if made.op.converts:
            pending.append((made.operands[0], outer))
        elif made.op.is_conjunction:
            pending += [(operand, outer) for operand in made.operands]
        elif made.op.compares in ("lt", "le", "gt", "ge"):
            low, high = made.operands if made.op.compares in ("lt", "le") else made.operands[::-1]
            yield outer.get(low, low), outer.get(high, high)
        elif made.op.is_branch:
            pending += _tests_of_branches(made, made.results.index(value), outer)


def _tests_of_branches(cond: Operation, index: int, outer: _Outer) -> list[tuple[Value, _Outer]]:
    """Return what is true where a result of a `cond` is, of which one branch gives false."""
    predicate, *operands = cond.operands
    ways = [{**outer, **{v: outer.get(o, o) for v, o in zip(b.arguments, operands, strict=True)}} for b in cond.blocks]
    then, other = (block.results[index] for block in cond.blocks)
    if _is_false(other) or ways[1].get(other) is outer.get(predicate, predicate):
        return [(predicate, outer), (then, ways[0])]
    return [(other, ways[1])] if _is_false(then) else []


def _is_false(value: Value) -> bool:
    made = value.operation
    if made is None or not made.op.is_constant:
        return False
    return not np.any(made.attributes["value"])


def _counter(loop: Operation, value: Value) -> tuple[int, tuple[Value, int]] | None:
    """Return which value of a loop changes by the same in each iteration, and by what with which sign; None for no such
    one.

    `value` is what it is after the iteration, or before.
    """
    body = loop.blocks[0]
    for index in range(loop.attributes["carried"]):
        before, after = body.arguments[index], body.results[1 + index]
        if value not in (before, after) or after.operation is None or not after.operation.op.adds_second:
            continue
        a, b = after.operation.operands
        sign = after.operation.op.adds_second
        if a is before:
            return index, (b, sign)
        if b is before and sign > 0:
            return index, (a, sign)
    return None
