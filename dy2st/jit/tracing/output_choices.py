"""Which tensor a result is, where branches and loops decide it: `z = y` under an `if`, and then `return y, z`.

A `cond` gives a value, not the tensor that had it in the branch that ran. Each tensor that a result may be gets a
number, and the `cond` gives that number as a result more; the call then takes the input or the result that has it. A
loop carries such a number; each iteration gives what it makes another one, where two results may be that tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import INT
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


class PossibleTensors:
    """The numbers of the tensors that values may be.

    z = cond(p, y, x) { (a, b): a } { (a, b): b }          z may be number 1 (y) or 0 (x), and
    z, k = cond(p, y, x) { (a, b): a, 1 } { (a, b): b, 0 }  tells which
    """

    def __init__(self, inputs: int) -> None:
        self._possible: dict[Value, frozenset[int]] = {}
        self._outer: dict[Value, tuple[Operation, Value]] = {}
        """The `cond`, `try` or loop of an argument of a block, and what that is outside of it."""
        self._repeated: dict[Block, Operation | None] = {}
        """The bodies of loops that run once, with these, and the blocks in them."""
        self._loops: dict[int, Operation] = {}
        """The loops that make the tensors of some numbers, one in each iteration."""
        self._shared = frozenset[int]()
        """The numbers of such tensors that several results may be: only these are told from one another."""
        self._counters: dict[Operation, Value] = {}
        self._told: dict[Value, Value] = {}
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

    def _find(self, value: Value) -> frozenset[int]:
        found, seen, todo = set[int](), {value}, [value]
        while todo:
            one = todo.pop()
            known = self._possible.get(one)
            before = None if known is not None else self._before(one)
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

    def _before(self, value: Value) -> list[Value] | None:
        """Return the values one of which a value is; None where it is made here."""
        made = value.operation
        if made is None:
            return self._before_argument(value) if value in self._outer else None
        if made.op.rewraps and made.operands:
            return [made.operands[0]]
        if not is_decided(value):
            return None
        self._enter(made, value.block)
        place = made.results.index(value)
        if made.op.is_loop:
            return [made.operands[1 + place], _left(made)[place]]
        return [block.results[place] for block in made.blocks]

    def _before_argument(self, value: Value) -> list[Value]:
        around, outer = self._outer[value]
        at = _carried_place(around, value)
        return [outer] if at is None else [outer, _left(around)[at]]

    def _enter(self, made: Operation, block: Block) -> None:
        """Note what the arguments of the blocks of an operation are outside of it."""
        taken = made.operands if made.op.is_try else made.operands[1:]
        for inner in made.blocks:
            first = len(inner.arguments) - len(taken)
            self._outer.update(
                (inside, (made, outer)) for inside, outer in zip(inner.arguments[first:], taken, strict=True)
            )
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

    def told(self, value: Value) -> Value:
        """Return the value that tells which of its possible tensors a value is; it is made where there is none."""
        if value not in self._told:
            self._told[value] = self._tell(value)
        return self._told[value]

    def _tell(self, value: Value) -> Value:
        made, own = value.operation, self._loops.keys() - self._shared
        possible = frozenset(NO_OTHER if n in own else n for n in self.of(value))
        if len(possible) < 2 and not possible <= self._shared:
            return _first(value.block, "scalar_constant", value=next(iter(possible)))
        if made is None:
            return self._tell_argument(value)
        if made.op.rewraps:
            return self.told(made.operands[0])
        if not is_decided(value):
            return self._tell_iteration(*possible)
        place = made.results.index(value)
        if made.op.is_loop:
            return self._tell_carried(made, place)[1]
        for block in made.blocks:
            block.results.append(self.told(block.results[place]))
        made.results.append(Value(INT, value.block, made))
        return made.results[-1]

    def _tell_argument(self, value: Value) -> Value:
        around, outer = self._outer[value]
        at = _carried_place(around, value)
        if at is not None:
            return self._tell_carried(around, at)[0]
        from_end = value.block.arguments.index(value) - len(value.block.arguments)
        arguments = [block.arguments[from_end] for block in around.blocks]
        around.operands.append(self.told(outer))
        self._told.update((x, b.add_argument(INT)) for x, b in zip(arguments, around.blocks, strict=True))
        return self._told[value]

    def _tell_carried(self, loop: Operation, place: int) -> tuple[Value, Value]:
        """Have a loop carry what tells one of the values that it carries; return the argument and the result."""
        (body,) = loop.blocks
        argument, result = body.arguments[_first_carried(loop) + place], loop.results[place]
        told = _carry(loop, self.told(loop.operands[1 + place]))
        self._told[argument], self._told[result] = told
        last = len(body.results) - 1
        body.results[last] = self.told(_left(loop)[place])
        return told

    def _tell_iteration(self, number: int) -> Value:
        """Return the number of a tensor that each iteration of a loop makes: other ones in all of them."""
        loop = self._loops[number]
        (body,) = loop.blocks
        if loop not in self._counters:
            step = _first(body, "scalar_constant", value=AN_ITERATION)
            if loop.op.is_counted:
                counter = _first(body, "scalar_mul", body.arguments[0], step)
            else:
                counter, _ = _carry(loop, _first(loop.results[0].block, "scalar_constant", value=0))
                body.results[-1] = _first(body, "scalar_add", counter, step)
            self._counters[loop] = counter
        own = _first(body, "scalar_constant", value=AN_ITERATION + number)
        return _first(body, "scalar_add", self._counters[loop], own)


def _first(block: Block, op: str, *operands: Value, **attributes: Any) -> Value:
    """Append an operation to those at the beginning of a block that tell tensors apart; return its result."""
    made = Builder(block).emit(op, operands, attributes)
    operation = block.operations.pop()
    at = max((block.operations.index(o.operation) + 1 for o in operands if o.operation is not None), default=0)
    block.operations.insert(at, operation)
    return made


def _first_carried(loop: Operation) -> int:
    """Return the number of the argument that is the first value that a loop carries."""
    return len(loop.blocks[0].arguments) - len(loop.operands) + 1


def _carry(loop: Operation, initial: Value) -> tuple[Value, Value]:
    """Have a loop carry a number more, which stays as it is; return the argument and the result."""
    (body,), carried = loop.blocks, loop.attributes["carried"]
    at = _first_carried(loop) + carried
    body.add_argument(INT)
    body.arguments.insert(at, body.arguments.pop())
    loop.operands.insert(1 + carried, initial)
    loop.attributes["carried"] += 1
    loop.results.append(Value(INT, loop.results[0].block, loop))
    body.results.append(body.arguments[at])
    return body.arguments[at], loop.results[-1]


def _left(loop: Operation) -> Sequence[Value]:
    """Return what an iteration of a loop leaves in the place of the values that it carries."""
    return loop.blocks[0].results if loop.op.is_counted else loop.blocks[0].results[1:]


def _carried_place(around: Operation, argument: Value) -> int | None:
    """Return which of the values that a loop carries an argument of its body is; None for others."""
    if not around.op.is_loop:
        return None
    body = around.blocks[0]
    at = body.arguments.index(argument) - _first_carried(around)
    return at if at < around.attributes["carried"] else None


def is_decided(value: Value) -> bool:
    """Return whether a value is what one of two branches left, or some iteration of a loop."""
    made = value.operation
    while made is not None and made.op.rewraps and made.operands:
        made = made.operands[0].operation
    return made is not None and (made.op.is_branch or made.op.is_try or made.op.is_loop)
