"""Make again, on the way back, what a loop need not keep for it.

Before                                                  After
    %h, %n, %kept = while_loop(%p, %a, %zero, %new, %x) {   %h, %n = while_loop(%p, %a, %zero, %x) {
        (%b, %i, %list, %x1) ->                                 (%b, %i, %x1) ->
        %row = index(%x1, %i)                                   %row = index(%x1, %i)
        ...                                                     ...
        %longer = list_append(%list, %row)                      return %again, %c, %j
        return %again, %c, %j, %longer                      }
    }                                                       %d = counted_while(%n, %e, %x) {
    %d = counted_while(%n, %e, %kept) {                         (%t, %f, %x1) ->
        (%t, %f, %list) ->                                      %row = index(%x1, %t)
        %row = list_get(%list, %t)                              ...
        ...                                                 }
    }

1. A tape is a list that begins empty and to which every iteration appends a value. A later loop of as many iterations
   reads what turn `t` has appended, for its own `t`: that cannot raise, so a read that nobody uses goes.
2. What iteration `t` has appended is made again where that takes no arithmetic on tensors: a constant, what does not
   change from iteration to iteration, a number that every iteration adds the same to, what is computed from such
   numbers, a view of a part of such a tensor, an extent of what another tape keeps.

The list that is left without a reader goes with the dead code.
"""

from __future__ import annotations

from typing import Any

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import INT, ScalarType, Type
from dy2st.ops.control.lists import ListAppend, ListGet, ListNew
from dy2st.ops.control.scalar import ScalarAdd, ScalarSub
from dy2st.ops.indexing.getitem import Index
from dy2st.ops.shape.shape import BroadcastExtent, DimOf
from dy2st.passes.core.base import Pass
from dy2st.passes.core.rewrite import Replacements, parts
from dy2st.passes.simplify.constant_fold import constant_of

_DEEPEST = 8


class Rematerialize(Pass):
    """Make values again that tapes keep for a later loop, where that costs no more than to read them."""

    name = "rematerialize"

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            changed |= _block(function, Replacements(function))
        return changed


def _block(block: Block, replacements: Replacements) -> bool:
    changed, before = False, dict[Value, Operation]()
    for operation in block.operations:
        replacements.operands(operation)
        if operation.op.is_counted:
            for loop in dict.fromkeys(before[v] for v in operation.operands[1:] if v in before):
                changed |= _has_iterations_of(loop, operation) and _Again(loop, operation, replacements).done()
        for inner in operation.blocks:
            changed |= _block(inner, replacements)
        if operation.op.is_loop:
            before.update((v, operation) for v in operation.results)
    replacements.results(block)
    return changed


def _has_iterations_of(loop: Operation, later: Operation) -> bool:
    """Return whether a loop runs as often as an earlier one did."""
    iterations = later.operands[0]
    if loop.op.is_counted:
        known = _number(iterations)
        return iterations is loop.operands[0] or (known is not None and known == _number(loop.operands[0]))
    if iterations not in loop.results:
        return False
    place = loop.results.index(iterations)
    return _step(loop, place) == 1 and _number(loop.operands[1 + place]) == 0


def _step(loop: Operation, place: int) -> int | None:
    """Return what every iteration adds to a carried int, None where it does something else."""
    (body,), iteration = loop.blocks, int(loop.op.is_counted)
    argument, made = body.arguments[iteration + place], body.results[1 - iteration + place].operation
    if argument.type != INT or made is None or argument not in made.operands:
        return None
    place = made.operands.index(argument)
    if isinstance(made.op, ScalarAdd):
        return _number(made.operands[1 - place])
    less = _number(made.operands[1]) if isinstance(made.op, ScalarSub) and place == 0 else None
    return None if less is None else -less


def _number(value: Value) -> int | None:
    """Return the int that a value is known to be."""
    known = constant_of(value)
    return known if type(known) is int else None


class _Again:
    """What a loop computed, in a later loop of as many iterations."""

    def __init__(self, loop: Operation, later: Operation, replacements: Replacements):
        self.loop, self.later, self.replacements = loop, later, replacements
        (self.source,), (self.body,) = loop.blocks, later.blocks
        self.iteration = int(loop.op.is_counted)
        self.here: dict[Value, Value] = {}
        """Values of the loop that are values of the later one, too."""
        self.kept: list[Operation] = []

    def done(self) -> bool:
        """Take reads of tapes away; return whether one of them could go.

        The reads that stay go to the front, those of tensors first: their extents may tell numbers.
        """
        operations = self.body.operations
        used = set(self.body.results).union(*(operation.operands for operation in operations))
        reads, gone = self._reads(), 0
        for read in sorted(reads, key=lambda read: isinstance(read.results[0].type, ScalarType)):
            if read.results[0] not in used or self._stands_for(reads[read], read.results[0]):
                gone += 1
            else:
                self.kept.append(read)
        if gone:
            operations[:] = [*self.kept, *(operation for operation in operations if operation not in reads)]
            for operation in operations:
                self.replacements.operands(operation)
            self.replacements.results(self.body)
        return gone > 0

    def _reads(self) -> dict[Operation, Value]:
        """1. Return the reads of tapes at the iteration, and what the loop appended there."""
        kept: dict[Value, Value] = {}
        for i, operand in enumerate(self.later.operands[1:], 1):
            if operand in self.loop.results and i > self.later.attributes["carried"]:
                value = self._appended(self.loop.results.index(operand))
                kept.update({} if value is None else {self.body.arguments[i]: value})
        found = [o for o in self.body.operations if isinstance(o.op, ListGet) and o.operands[0] in kept]
        return {o: kept[o.operands[0]] for o in found if o.operands[1] is self.body.arguments[0]}

    def _appended(self, place: int) -> Value | None:
        """Return what every iteration appends to a list that begins empty."""
        begun = self.loop.operands[1 + place].operation
        longer = self.source.results[1 - self.iteration + place].operation
        if begun is None or not isinstance(begun.op, ListNew) or begun.operands:
            return None
        if longer is None or not isinstance(longer.op, ListAppend):
            return None
        items, value = longer.operands
        return value if items is self.source.arguments[self.iteration + place] else None

    def _stands_for(self, value: Value, read: Value) -> bool:
        """2. Put what makes a value again in the place of its read, where that is possible."""
        here, made = dict(self.here), list[Operation]()
        if self._may(value):
            new = self._make(value, here, made)
            self.replacements.pending += made
            if self.replacements.replace(read, new):
                self.here = here
                self.kept += made
                return True
        self.here[value] = read
        return False

    def _may(self, value: Value, depth: int = _DEEPEST) -> bool:
        made = value.operation
        if value in self.here or (made is not None and made.op.is_constant):
            return True
        if made is None:
            return self._is_iteration(value) or self._counts(value) is not None or self._outside(value) is not None
        op = made.op
        if depth == 0 or not (op.is_scalar or isinstance(op, (DimOf, BroadcastExtent)) or _is_part(made)):
            return False
        return all(self._may(v, depth - 1) for v in made.operands)

    def _make(self, value: Value, here: dict[Value, Value], into: list[Operation]) -> Value:
        """Make a value again of which `_may` says that it can be; the operations go to `into`."""
        if value in here:
            return here[value]
        made = value.operation
        if made is None and self._is_iteration(value):
            here[value] = self.body.arguments[0]
        elif made is None and (counts := self._counts(value)) is not None:
            here[value] = self._counted(*counts, into)
        elif made is None:
            outer = self._outside(value)
            assert outer is not None
            here[value] = self._captured(outer, value)
        else:
            operands = [self._make(v, here, into) for v in made.operands]
            again = Operation(made.op, operands, dict(made.attributes), [], made.location)
            kind: Type = value.type
            if not made.op.is_constant:
                kind = made.op.infer_operation([v.type for v in operands], made.attributes, ())
            again.results.append(Value(kind, self.body, again))
            into.append(again)
            here[value] = again.results[0]
        return here[value]

    def _is_iteration(self, value: Value) -> bool:
        """Return whether an argument of the loop is the number of the iteration."""
        return self.source.arguments.index(value) < self.iteration and not self.loop.attributes["reverse"]

    def _counts(self, value: Value) -> tuple[Value, int] | None:
        """Return what an argument of the loop begins with, and what every iteration adds to it; None for another
        one.
        """
        place = self.source.arguments.index(value) - self.iteration
        if not 0 <= place < self.loop.attributes["carried"]:
            return None
        begun, step = self.loop.operands[1 + place], _step(self.loop, place)
        return None if step is None or not isinstance(begun.type, ScalarType) else (begun, step)

    def _counted(self, begun: Value, step: int, into: list[Operation]) -> Value:
        """Make the number that an iteration begins with, where iterations before it have each added `step`."""
        made, start = self.body.arguments[0], _number(begun)
        if step != 1:
            made = self._computed("scalar_mul", [made, self._int(step, into)], into)
        if start == 0:
            return made
        first = self._captured(begun, begun) if start is None else self._int(start, into)
        return self._computed("scalar_add", [first, made], into)

    def _int(self, number: int, into: list[Operation]) -> Value:
        return self._computed("scalar_constant", [], into, {"value": number})

    def _computed(
        self, name: str, operands: list[Value], into: list[Operation], attributes: dict[str, Any] | None = None
    ) -> Value:
        """Make an operation that gives an int."""
        made = Operation(lookup(name), operands, attributes or {}, [], self.later.location)
        kind = made.op.infer_operation([v.type for v in operands], made.attributes, ())
        made.results.append(Value(kind, self.body, made))
        into.append(made)
        return made.results[0]

    def _outside(self, value: Value) -> Value | None:
        """Return what an argument of the loop is in every iteration: an operand that has the same type."""
        place = self.source.arguments.index(value) - self.iteration
        if place < self.loop.attributes["carried"]:
            return None
        outer = self.loop.operands[1 + place]
        return outer if outer.type == value.type and not parts(outer.type) else None

    def _captured(self, outer: Value, like: Value) -> Value:
        """Return the argument that hands a value from outside to the later loop."""
        first = 1 + self.later.attributes["carried"]
        for operand, argument in zip(self.later.operands[first:], self.body.arguments[first:], strict=True):
            if operand is outer and argument.type == like.type:
                return argument
        self.later.operands.append(outer)
        return self.body.add_argument(like.type, like.name)


def _is_part(made: Operation) -> bool:
    """Return whether an operation gives a view of a part of a tensor."""
    return isinstance(made.op, Index) and made.op.makes_view(**made.attributes)
