"""What a run tells of values: a number for each, carried beside it through branches and loops.

z = cond(p, y, x) { (a, b): a } { (a, b): b }          z has the number of y or that of x, and
z, k = cond(p, y, x) { (a, b): a, 1 } { (a, b): b, 0 }  tells which
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, OpDef, Operation, Value
from dy2st.ir.types import INT, ListType, Type


class ToldValues:
    """The numbers of values, and the values of the run that tell them."""

    def __init__(self) -> None:
        self._outer: dict[Value, tuple[Operation, Value]] = {}
        """The `cond`, `try` or loop of an argument of a block, and what that is outside of it."""
        self._tries = set[Operation]()
        self._handed: dict[Value, tuple[Operation, Value]] = {}
        """The `raise` that hands an argument to the handler of a `try`, and what that is where it raises."""
        self._told: dict[Value, Value] = {}

    def known(self, value: Value) -> int | None:
        """Return the number of a value where the trace knows it."""
        raise NotImplementedError

    def tell_here(self, value: Value) -> Value:
        """Return the value that tells the number of what neither branches nor a loop decide."""
        raise NotImplementedError

    def told_type(self, value: Value) -> Type:
        """Return the type of what tells the number of a value, or the numbers of a list's elements."""
        return ListType(INT) if isinstance(value.type, ListType) else INT

    def is_moved(self, value: Value) -> bool:
        """Return whether `tell_here` knows the operation that put a value into another one, or took it out."""
        return False

    def enter(self, made: Operation, block: Block) -> None:
        """Note what the arguments of the blocks of an operation, which stands in `block`, are outside of it."""
        taken = made.operands if made.op.is_try else made.operands[1:]
        for inner in made.blocks:
            first = len(inner.arguments) - len(taken)
            self._outer.update(
                (inside, (made, outer)) for inside, outer in zip(inner.arguments[first:], taken, strict=True)
            )
        if made.op.is_try and made not in self._tries:
            self._tries.add(made)
            self._enter_try(made)

    def _enter_try(self, made: Operation) -> None:
        """Note what the arguments of a handler are where the body raises."""
        body, handler = made.blocks
        waiting = [body]
        while waiting:
            block = waiting.pop()
            for o in block.operations:
                if o.op.is_raise and o.attributes["label"] == made.attributes["label"] is not None:
                    self._handed.update((v, (o, x)) for v, x in zip(handler.arguments, o.operands, strict=False))
                if o.blocks:
                    self.enter(o, block)
                    waiting += o.blocks

    def before(self, value: Value) -> list[Value] | None:
        """Return the values one of which a value is; None where it is made here."""
        made = value.operation
        if made is None and value in self._handed:
            return [self._handed[value][1]]
        if made is None:
            return self._before_argument(value) if value in self._outer else None
        if made.op.rewraps and made.operands:
            return [made.operands[0]]
        if not is_decided(value):
            return None
        self.enter(made, value.block)
        place = made.results.index(value)
        if made.op.is_loop:
            return [made.operands[1 + place], left_by(made)[place]]
        return [block.results[place] for block in made.blocks]

    def _before_argument(self, value: Value) -> list[Value]:
        around, outer = self._outer[value]
        at = _carried_place(around, value)
        return [outer] if at is None else [outer, left_by(around)[at]]

    def told(self, value: Value) -> Value:
        """Return the value that tells the number of a value; it is made where there is none."""
        if value not in self._told:
            self._told[value] = self._tell(value)
        return self._told[value]

    def _tell(self, value: Value) -> Value:
        made, known = value.operation, self.known(value)
        if known is not None:
            return insert_first(value.block, "scalar_constant", value=known)
        if made is None:
            return self._tell_argument(value)
        if made.op.rewraps and not self.is_moved(value):
            return self.told(made.operands[0])
        if not is_decided(value) or self.is_moved(value):
            return self.tell_here(value)
        place = made.results.index(value)
        if made.op.is_loop:
            return self._tell_carried(made, place)[1]
        told = [self.told(block.results[place]) for block in made.blocks]  # which may tell other results of it
        for block, number in zip(made.blocks, told, strict=True):
            block.results.append(number)
        made.results.append(Value(self.told_type(value), value.block, made))
        return made.results[-1]

    def _tell_handed(self, value: Value) -> Value:
        """Have a `raise` hand over what tells one of the values that it hands to a handler."""
        thrown, x = self._handed[value]
        told, block = self.told(x), value.block
        block.add_argument(self.told_type(value))
        block.arguments.insert(len(thrown.operands), block.arguments.pop())
        thrown.operands.append(told)
        return block.arguments[len(thrown.operands) - 1]

    def _tell_argument(self, value: Value) -> Value:
        if value in self._handed:
            return self._tell_handed(value)
        around, outer = self._outer[value]
        at = _carried_place(around, value)
        if at is not None:
            return self._tell_carried(around, at)[0]
        from_end = value.block.arguments.index(value) - len(value.block.arguments)
        arguments = [block.arguments[from_end] for block in around.blocks]
        around.operands.append(self.told(outer))
        kind = self.told_type(value)
        self._told.update((x, b.add_argument(kind)) for x, b in zip(arguments, around.blocks, strict=True))
        return self._told[value]

    def _tell_carried(self, loop: Operation, place: int) -> tuple[Value, Value]:
        """Have a loop carry what tells one of the values that it carries; return the argument and the result."""
        (body,) = loop.blocks
        argument, result = body.arguments[_first_carried(loop) + place], loop.results[place]
        told = carry(loop, self.told(loop.operands[1 + place]), self.told_type(result))
        self._told[argument], self._told[result] = told
        last = len(body.results) - 1
        body.results[last] = self.told(left_by(loop)[place])
        return told


def insert_first(block: Block, op: str, *operands: Value, **attributes: Any) -> Value:
    """Append an operation to those at the beginning of a block that tell numbers; return its result."""
    return insert_after(block, None, op, operands, attributes)[0]


def insert_after(
    block: Block, made: Operation | None, op: OpDef | str, operands: Sequence[Value], attributes: dict[str, Any]
) -> Sequence[Value]:
    """Put an operation behind another one and what its operands are made by; return its results."""
    operation = Builder(block).operation(op, operands, attributes)
    block.operations.pop()
    before = [made, *(o.operation for o in operands)]
    at = max((block.operations.index(o) + 1 for o in before if o is not None), default=0)
    block.operations.insert(at, operation)
    return operation.results


def _first_carried(loop: Operation) -> int:
    """Return the number of the argument that is the first value that a loop carries."""
    return len(loop.blocks[0].arguments) - len(loop.operands) + 1


def carry(loop: Operation, initial: Value, kind: Type = INT) -> tuple[Value, Value]:
    """Have a loop carry a value more, which stays as it is; return the argument and the result."""
    body = loop.blocks[0]
    carried: int = loop.attributes["carried"]
    at = _first_carried(loop) + carried
    body.add_argument(kind)
    body.arguments.insert(at, body.arguments.pop())
    loop.operands.insert(1 + carried, initial)
    loop.attributes["carried"] += 1
    loop.results.append(Value(kind, loop.results[0].block, loop))
    body.results.append(body.arguments[at])
    return body.arguments[at], loop.results[-1]


def left_by(loop: Operation) -> Sequence[Value]:
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
