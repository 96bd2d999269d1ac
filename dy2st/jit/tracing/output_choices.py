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
from dy2st.ir.types import (
    INT,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    UnsetType,
    VariantType,
    has_tensors,
)
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


class Told:
    """A list, tuple or one of several things of a run, with the numbers of the tensors in it in the same structure.

    `known` are the tensors that have a number.
    """

    __slots__ = ("known", "made", "numbers")

    def __init__(self, made: Any, numbers: Any, known: dict[int, Any]) -> None:
        self.made, self.numbers, self.known = made, numbers, known


@record(frozen=True)
class StructureChoice:
    """A result, by number, with tensors in it that may be others, or those in the structures `before` it.

    It is a list, or one of several things. The result with the number `which` has the numbers of its tensors, `sources`
    and `others` are those of ResultChoice.
    """

    result: int
    which: int
    sources: Mapping[int, int]
    others: tuple[tuple[int, int], ...]
    before: int | None

    def of(self, inputs: Sequence[Any], results: Sequence[Any]) -> Told:
        """Return the result with its numbers."""
        known: dict[int, Any] = {} if self.before is None else results[self.before].known
        for told, source in self.sources.items():
            known[told] = inputs[source] if source < len(inputs) else results[source - len(inputs)]
        for which, result in self.others:
            known.setdefault(results[which], results[result])
        known.pop(NO_OTHER, None)
        numbers = results[self.which]
        return Told(results[self.result], getattr(numbers, "payload", numbers), known)


def told_type(t: Type) -> Type:
    """Return the type of the numbers of the tensors in a value of this type, in the same structure."""
    if isinstance(t, (ConstType, UnsetType)):
        return t
    if not has_tensors(t):
        return INT
    if isinstance(t, ListType):
        return ListType(told_type(t.element))
    if isinstance(t, TupleType):
        return TupleType(tuple(map(told_type, t.items)))
    return VariantType(tuple(map(told_type, t.alternatives))) if isinstance(t, VariantType) else INT


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
        self._structures = set[Value]()
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
        found, made = super().before(value), value.operation
        if made is not None and made.op.rewraps and isinstance(value.type, TensorType):
            return found if self.is_tellable(made.operands[0]) else None
        if found is None and _is_moved(value) and self.is_tellable(value):
            return _members(value)
        return found

    def is_structure(self, value: Value) -> bool:
        """Return whether what tells a value has a structure: that of a list or tuple, or of a noted variant."""
        return value in self._structures or (isinstance(value.type, (ListType, TupleType)) and has_tensors(value.type))

    def is_moved(self, value: Value) -> bool:
        made = value.operation
        if made is None or made.blocks:
            return False
        return self.is_structure(value) or any(map(self.is_structure, made.operands))

    def note_structures(self, values: Sequence[Value], some: Sequence[Value]) -> None:
        """Note the variants among values that are told in their structure: what meets one that is, is as well.

        So are `some` in any case.
        """
        around = {v: self._around(v) for v in values}
        for value in some:
            self._structures |= around[value]
        changed = True
        while changed:
            changed = False
            for group in around.values():
                one = any(v in self._structures or is_structured(v.type) for v in group)
                if one and not group <= self._structures:
                    self._structures |= group
                    changed = True

    def _around(self, value: Value) -> set[Value]:
        """Return what a value is made of, without tensors and what has none."""
        seen, todo = {value}, [value]
        while todo:
            one = todo.pop()
            new = {v for v in self.before(one) or () if v not in seen and _is_told_in(one, v)}
            seen |= new
            todo += new
        return {v for v in seen if not isinstance(v.type, TensorType)}

    def is_tellable(self, value: Value) -> bool:
        """Return whether the numbers of the tensors in a value, or of one that is taken out of it, can be told."""
        if value not in self._tellable:
            seen, todo = {value}, [value]
            while todo and len(seen) <= FARTHEST:
                one = todo.pop()
                before = super().before(one)
                if not before and not (_is_moved(one) or _is_empty(one)):
                    break
                new = {v for v in before or _members(one) if v not in seen and not isinstance(v.type, TensorType)}
                new = {v for v in new if _is_told_in(one, v)}
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
        if self.is_structure(value):
            return None
        if not has_tensors(value.type):
            return NO_OTHER
        own = self._loops.keys() - self._shared
        possible = frozenset(NO_OTHER if n in own else n for n in self.of(value))
        return next(iter(possible)) if len(possible) < 2 and not possible <= self._shared else None

    def told_type(self, value: Value) -> Type:
        if not self.is_structure(value):
            return INT
        if isinstance(value.type, VariantType):
            return VariantType(tuple(map(told_type, value.type.alternatives)))
        return told_type(value.type)

    def tell_here(self, value: Value) -> Value:
        made = value.operation
        if made is None or not (self.is_structure(value) or self.before(value)):
            return self._tell_iteration(*self.of(value))
        lists = isinstance(made.operands[0].type, ListType) if made.operands else False
        operands = [
            v if lists and isinstance(v.type, ScalarType)  # a place in the list
            else self.told(v) if _is_told_in(value, v)
            else insert_first(value.block, "scalar_constant", value=NO_OTHER)
            for v in made.operands
        ]  # fmt: skip
        attributes = dict(made.attributes)
        if "type" in attributes:
            attributes["type"] = self.told_type(value)
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


def is_structured(t: Type) -> bool:
    """Return whether a value of this type has a structure of more than a tensor that may not be there."""
    parts: tuple[Type, ...] = t.alternatives if isinstance(t, VariantType) else (t,)
    return has_tensors(t) and any(isinstance(part, (ListType, TupleType)) for part in parts)


def _is_told_in(value: Value, part: Value) -> bool:
    """Return whether what is in a value, or what that is one of, has numbers that tell it: tensors, or alternatives."""
    return has_tensors(part.type) or (isinstance(value.type, VariantType) and isinstance(part.type, VariantType))


def _is_moved(value: Value) -> bool:
    """Return whether a value is a tensor or has some, and is made by moving elements alone."""
    made = value.operation
    return made is not None and made.op.moves_elements and has_tensors(value.type)


def _is_empty(value: Value) -> bool:
    """Return whether there is no tensor in a value: one that no run reaches, or of which a constant is taken."""
    made = value.operation
    return made is not None and not made.operands and not made.blocks and not isinstance(value.type, TensorType)


def _members(value: Value) -> list[Value]:
    """Return what is in a value, or what it is taken out of."""
    made = value.operation
    assert made is not None
    return [v for v in made.operands if has_tensors(v.type)]
