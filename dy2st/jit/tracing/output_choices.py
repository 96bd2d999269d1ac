"""Which tensor a result is, where branches and loops decide it: `z = y` under an `if`, and then `return y, z`.

A `cond` gives a value, not the tensor that had it in the branch that ran. Each tensor that a result may be gets a
number, and the `cond` gives that number as a result more; the call then takes the input or the result that has it. A
loop carries such a number; each iteration gives what it makes another one, where two results may be that tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import INT, ListType, ScalarType, TensorType
from dy2st.jit.tracing.told_values import ToldValues, carry, insert_after, insert_first, is_decided
from dy2st.records import record

FARTHEST = 400
"""So many values are looked through, of branches and loops one after the other."""
AN_ITERATION = 1 << 20
"""What numbers of tensors that a loop makes differ by from one iteration to the next: more than there are others."""
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


class ToldList:
    """A list of a run with the number of each element; `known` are the tensors that have a number."""

    __slots__ = ("known", "made", "numbers")

    def __init__(self, made: Any, numbers: Sequence[int], known: dict[int, Any]) -> None:
        self.made, self.numbers, self.known = made, numbers, known


@record(frozen=True)
class ListChoice:
    """A result, by number, that is a list of which elements may be other tensors, or those of the lists `before` it.

    The result with the number `which` has the number of each element, `sources` and `others` are those of ResultChoice.
    """

    result: int
    which: int
    sources: Mapping[int, int]
    others: tuple[tuple[int, int], ...]
    before: int | None

    def of(self, inputs: Sequence[Any], results: Sequence[Any]) -> ToldList:
        """Return the list with its numbers."""
        known: dict[int, Any] = {} if self.before is None else results[self.before].known
        for told, source in self.sources.items():
            known[told] = inputs[source] if source < len(inputs) else results[source - len(inputs)]
        for which, result in self.others:
            known.setdefault(results[which], results[result])
        known.pop(NO_OTHER, None)
        numbers = results[self.which]
        return ToldList(results[self.result], getattr(numbers, "payload", numbers), known)


class PossibleTensors(ToldValues):
    """The numbers of the tensors that values may be."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self._possible: dict[Value, frozenset[int]] = {}
        self._repeated: dict[Block, Operation | None] = {}
        """The bodies of loops that run once, with these, and the blocks in them."""
        self._loops: dict[int, Operation] = {}
        """The loops that make the tensors of some numbers, one in each iteration."""
        self._shared = frozenset[int]()
        """The numbers of such tensors that several results may be: only these are told from one another."""
        self._counters: dict[Operation, Value] = {}
        self._tellable: dict[Value, bool] = {}
        self._next = inputs

    def number(self, value: Value, number: int) -> None:
        """Give the tensor of an input its number."""
        self._possible[value] = frozenset((number,))

    def of(self, value: Value) -> frozenset[int]:
        """Return the numbers of all tensors that a value may be."""
        found = self._possible.get(value)
        if found is None:
            found = self._possible[value] = self._find(value)
        return found

    def is_open(self, value: Value) -> bool:
        """Return whether branches, a loop or a list decide which tensor a value is."""
        return is_decided(value) or (isinstance(value.type, TensorType) and self.before(value) is not None)

    def before(self, value: Value) -> list[Value] | None:
        found = super().before(value)
        if found is None and _is_of_list(value) and self.is_tellable(value):
            return _members(value)
        return found

    def is_tellable(self, value: Value) -> bool:
        """Return whether the numbers of a list's elements, or of one that is taken out of it, can be told."""
        if value not in self._tellable:
            seen, todo = {value}, [value]
            while todo and len(seen) <= FARTHEST:
                one = todo.pop()
                before = super().before(one)
                if any(not isinstance(v.type, ListType) for v in before or ()) or not (before or _is_of_list(one)):
                    break
                new = {v for v in before or _members(one) if v not in seen and isinstance(v.type, ListType)}
                seen |= new
                todo += new
            else:
                self._tellable |= dict.fromkeys(seen, not todo)
            self._tellable.setdefault(value, False)
        return self._tellable[value]

    def _find(self, value: Value) -> frozenset[int]:
        found, seen, todo = set[int](), {value}, [value]
        while todo:
            one = todo.pop()
            known = self._possible.get(one)
            before = None if known is not None else self.before(one)
            if before is None:
                found |= self._of_one(one) if known is None else known
            else:
                new = [v for v in before if v not in seen]
                seen.update(new)
                todo += new
            if len(seen) > FARTHEST:
                return frozenset((NO_OTHER,))
        return frozenset(found)

    def _of_one(self, value: Value) -> frozenset[int]:
        """Return the number of a tensor that is made here: that of the first iteration, in a loop."""
        made = value.operation
        if made is None or made.op.is_constant or made.op.rewraps or made.blocks:  # equal constants are one value
            return frozenset((NO_OTHER,))
        if value.block in self._repeated:
            loop = self._repeated[value.block]
            if loop is None or self._next >= AN_ITERATION:
                return frozenset((NO_OTHER,))
            self._loops[self._next] = loop
        self._next += 1
        self._possible[value] = frozenset((self._next - 1,))
        return self._possible[value]

    def enter(self, made: Operation, block: Block) -> None:
        super().enter(made, block)
        for inner in made.blocks:
            if block in self._repeated:
                self._repeated[inner] = None
            elif made.op.is_loop:
                self._repeated[inner] = made

    def share(self, results: Sequence[Value]) -> None:
        """Note which tensors of iterations several of all results that are to be told may be.

        No result that is looked for is another one: a loop carries no number for each of them.
        """
        times = Counter(n for value in results for n in self.of(value))
        self._shared = frozenset(n for n in self._loops if times[n] > 1)

    def known(self, value: Value) -> int | None:
        if isinstance(value.type, ListType):
            return None
        own = self._loops.keys() - self._shared
        possible = frozenset(NO_OTHER if n in own else n for n in self.of(value))
        return next(iter(possible)) if len(possible) < 2 and not possible <= self._shared else None

    def tell_here(self, value: Value) -> Value:
        made = value.operation
        if made is None or not (isinstance(value.type, ListType) or self.before(value)):
            return self._tell_iteration(*self.of(value))
        operands = [v if isinstance(v.type, ScalarType) else self.told(v) for v in made.operands]
        attributes = {"type": ListType(INT)} if "type" in made.attributes else made.attributes
        results = insert_after(value.block, made, made.op, operands, attributes)
        self._told.update(zip(made.results, results, strict=True))
        return self._told[value]

    def _tell_iteration(self, number: int) -> Value:
        """Return the number of a tensor that each iteration of a loop makes: other ones in all of them."""
        loop = self._loops[number]
        (body,) = loop.blocks
        if loop not in self._counters:
            step = insert_first(body, "scalar_constant", value=AN_ITERATION)
            if loop.op.is_counted:
                counter = insert_first(body, "scalar_mul", body.arguments[0], step)
            else:
                counter, _ = carry(loop, insert_first(loop.results[0].block, "scalar_constant", value=0))
                body.results[-1] = insert_first(body, "scalar_add", counter, step)
            self._counters[loop] = counter
        own = insert_first(body, "scalar_constant", value=AN_ITERATION + number)
        return insert_first(body, "scalar_add", self._counters[loop], own)


def _is_of_list(value: Value) -> bool:
    """Return whether a value is a list of tensors, or an element of one, that is made by moving elements alone."""
    made = value.operation
    return (
        made is not None
        and made.op.moves_elements
        and (
            isinstance(value.type, TensorType)
            or (isinstance(value.type, ListType) and isinstance(value.type.element, TensorType))
        )
    )


def _members(value: Value) -> list[Value]:
    made = value.operation
    assert made is not None
    return [v for v in made.operands if not isinstance(v.type, ScalarType)]
