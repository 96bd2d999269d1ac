"""Which tensor a result is, where branches decide it: `z = y` under an `if`, and then `return y, z`.

A `cond` gives a value, not the tensor that had it in the branch that ran. Each tensor that a result may be gets a
number, and the `cond` gives that number as a result more; the call then takes the input or the result that has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import INT
from dy2st.records import record

FARTHEST = 100
"""So many branches one after the other are looked through."""
NO_OTHER = -1
"""The number of a tensor that is told from all others."""


@record(frozen=True)
class ResultChoice:
    """A result, by number, that may be another tensor.

    The result with the number `which` tells the tensor: `sources` has the inputs and results (counted after the inputs)
    that it may be, `others` results that branches decide as well, each after that which tells its tensor.
    """

    result: int
    which: int
    sources: Mapping[int, int]
    others: tuple[tuple[int, int], ...]

    def of(self, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Return the real tensor."""
        told = results[self.which]
        source = self.sources.get(told)
        if source is not None:
            return inputs[source] if source < len(inputs) else results[source - len(inputs)]
        if told == NO_OTHER:
            return results[self.result]
        return results[next((r for which, r in self.others if results[which] == told), self.result)]


class PossibleTensors:
    """The numbers of the tensors that values may be.

    z = cond(p, y, x) { (a, b): a } { (a, b): b }          z may be number 1 (y) or 0 (x), and
    z, k = cond(p, y, x) { (a, b): a, 1 } { (a, b): b, 0 }  tells which
    """

    def __init__(self, inputs: int) -> None:
        self._possible: dict[Value, frozenset[int]] = {}
        self._outer: dict[Value, tuple[Operation, Value]] = {}
        """The `cond` or `try` of an argument of a branch, and what that is outside of it."""
        self._told: dict[Value, Value] = {}
        self._next = inputs

    def number(self, value: Value, number: int) -> None:
        """Give the tensor of an input its number."""
        self._possible[value] = frozenset((number,))

    def of(self, value: Value, depth: int = 0) -> frozenset[int]:
        """Return the numbers of all tensors that a value may be."""
        found = self._possible.get(value)
        if found is None:
            found = self._possible[value] = self._find(value, depth)
        return found

    def _find(self, value: Value, depth: int) -> frozenset[int]:
        made = value.operation
        if made is None and value in self._outer:
            return self.of(self._outer[value][1], depth)
        if made is not None and made.op.rewraps and made.operands:
            return self.of(made.operands[0], depth)
        if branches_decide(value) and depth < FARTHEST:
            return self._of_branches(cast("Operation", made), value, depth + 1)
        if made is None or made.op.is_constant or made.op.rewraps or made.blocks:  # equal constants are one value
            return frozenset((NO_OTHER,))
        self._next += 1
        return frozenset((self._next - 1,))

    def _of_branches(self, made: Operation, value: Value, depth: int) -> frozenset[int]:
        taken = made.operands[1:] if made.op.is_branch else made.operands
        for block in made.blocks:
            first = len(block.arguments) - len(taken)
            pairs = zip(block.arguments[first:], taken, strict=True)
            self._outer.update((inside, (made, outer)) for inside, outer in pairs)
        place = made.results.index(value)
        return frozenset().union(*(self.of(block.results[place], depth) for block in made.blocks))

    def told(self, value: Value) -> Value:
        """Return the value that tells which of its possible tensors a value is; it is made where there is none."""
        if value not in self._told:
            self._told[value] = self._tell(value)
        return self._told[value]

    def _tell(self, value: Value) -> Value:
        made, possible = value.operation, self.of(value)
        if len(possible) < 2:
            number = next(iter(possible))
            return Builder(value.block).emit("scalar_constant", [], {"value": number})
        if made is None:  # the branches take it as one more operand
            around, outer = self._outer[value]
            from_end = around.operands.index(outer) - len(around.operands)
            arguments = [block.arguments[from_end] for block in around.blocks]
            around.operands.append(self.told(outer))
            self._told.update((x, b.add_argument(INT)) for x, b in zip(arguments, around.blocks, strict=True))
            return self._told[value]
        if made.op.rewraps:
            return self.told(made.operands[0])
        place = made.results.index(value)
        for block in made.blocks:
            block.results.append(self.told(block.results[place]))
        made.results.append(Value(INT, value.block, made))
        return made.results[-1]


def branches_decide(value: Value) -> bool:
    """Return whether a value is what one of two branches left."""
    return value.operation is not None and (value.operation.op.is_branch or value.operation.op.is_try)
