"""Move what does not change in a loop out of it.

Before                                                  After
    %n = counted_while(%k, %s, %x) {                             %e = exp(%x)
        (%i, %s1, %x1) ->                                   %n = counted_while(%k, %s, %e) {
        %e = exp(%x1)                                           (%i, %s1, %e1) ->
        %t = add(%s1, %e)                                       %t = add(%s1, %e1)
        return %t                                               return %t
    }                                                       }

1. An operation of the body whose operands are invariants, constants or moved themselves is moved in front of the loop.
   It runs there even if the loop has no iteration, so it must be pure: what may raise, and effects, stay. So does what
   is right only behind a check that stays.
2. A carried value that every iteration passes on as it is becomes an invariant.

Constants stay where they are, because they cost nothing; so do lists, which the loop may want to grow in place.
"""

from __future__ import annotations

from dy2st.ir.clone import clone_operation
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ops.shape.shape import Broadcast
from dy2st.passes.core.base import Pass
from dy2st.passes.core.effects import Effects
from dy2st.passes.core.rewrite import Replacements, parts


class HoistInvariants(Pass):
    """Move loop-invariant operations in front of their loop."""

    name = "licm"

    def apply(self, program: Program) -> bool:
        effects = Effects(program)
        changed = False
        for function in program.functions.values():
            changed |= _Hoist(effects, Replacements(function)).block(function)
        return changed


def hoist_out_of_loops(block: Block, effects: Effects) -> None:
    """Move invariant operations out of the loops in a block, inner loops first; no value is replaced (1. alone)."""
    hoist = _Hoist(effects, Replacements(block))
    kept: list[Operation] = []
    for operation in block.operations:
        for inner in operation.blocks:
            hoist_out_of_loops(inner, effects)
        if operation.op.is_loop:
            kept += hoist.hoisted(operation, block)
        kept.append(operation)
    block.operations[:] = kept


class _Hoist:
    def __init__(self, effects: Effects, replacements: Replacements):
        self.effects, self.replacements = effects, replacements

    def block(self, block: Block) -> bool:
        """Hoist in a block, inner loops first, so that an operation can leave several loops at once."""
        changed = False
        kept: list[Operation] = []
        for operation in block.operations:
            self.replacements.operands(operation)
            for inner in operation.blocks:
                changed |= self.block(inner)
            if operation.op.is_loop:
                changed |= self.converge(operation)
                moved = self.hoisted(operation, block)
                changed |= bool(moved)
                self.replacements.pending += moved
                kept += moved
            kept.append(operation)
        block.operations[:] = kept
        self.replacements.results(block)
        return changed

    def hoisted(self, loop: Operation, into: Block) -> list[Operation]:
        """1. Return copies for `into` of the body's invariant operations, which leave the body."""
        body, iteration = loop.blocks[0], int(loop.op.is_counted)
        first = iteration + loop.attributes["carried"]
        outside = dict(zip(body.arguments[first:], loop.operands[1 + loop.attributes["carried"] :], strict=True))
        moved: list[Operation] = []
        stays: list[Operation] = []
        for operation in body.operations:
            if not self.may_leave(operation, outside):
                stays.append(operation)
                continue
            for value in operation.operands:
                if value not in outside and value.operation is not None:
                    moved.append(clone_operation(value.operation, into, outside))
            moved.append(clone_operation(operation, into, outside))
            for value in operation.results:
                value.operation = None
                body.arguments.append(value)
                loop.operands.append(outside[value])
        body.operations[:] = stays
        return moved

    def may_leave(self, operation: Operation, outside: dict[Value, Value]) -> bool:
        if operation.op.is_constant or not operation.results or any(parts(v.type) for v in operation.results):
            return False
        if not all(v in outside or _is_constant(v) for v in operation.operands):
            return False
        return self.effects.is_pure(operation) and not _is_checked_beside(operation)

    def converge(self, loop: Operation) -> bool:
        """2."""
        body, iteration = loop.blocks[0], int(loop.op.is_counted)
        test = 1 - iteration
        changed = False
        for i in reversed(range(loop.attributes["carried"])):
            argument, operand = body.arguments[iteration + i], loop.operands[1 + i]
            if body.results[test + i] is not argument or not self.replacements.replace(loop.results[i], operand):
                continue
            loop.attributes["carried"] -= 1
            loop.operands.append(loop.operands.pop(1 + i))
            body.arguments.append(body.arguments.pop(iteration + i))
            del loop.results[i], body.results[test + i]
            changed = True
        return changed


def _is_checked_beside(operation: Operation) -> bool:
    """Return whether it broadcasts to a number what only the `broadcast_extent` beside it, which stays, shows to
    fit.
    """
    if not isinstance(operation.op, Broadcast):
        return False
    before, after = (tensor_type(v).shape[::-1] for v in (operation.operands[0], operation.results[0]))
    return any(isinstance(e, int) and not isinstance(extent, int) for extent, e in zip(before, after, strict=False))


def _is_constant(value: Value) -> bool:
    return value.operation is not None and value.operation.op.is_constant
