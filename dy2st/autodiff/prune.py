"""Leave out of a derivative what it does not need: dead operations, residuals, what each iteration of a loop would
store.

A backward block reads residuals out of optionals and tapes that are known to hold them, so these reads never raise and
go like anything else when nobody uses what they give.
"""

from __future__ import annotations

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ops.control.lists import ListGet
from dy2st.ops.control.optional import VariantGet
from dy2st.passes.core.effects import Effects
from dy2st.passes.loops.licm import hoist_out_of_loops
from dy2st.passes.simplify.dce import RemoveDeadCode


class SureReads(Effects):
    """Judge operations of a backward Program, where reads of optionals and lists never fail."""

    def both(self, operation: Operation) -> tuple[bool, bool]:
        return (False, False) if isinstance(operation.op, (VariantGet, ListGet)) else super().both(operation)


class KnownCalls(Effects):
    """Judge operations where not every function that they call may be known."""

    def both(self, operation: Operation) -> tuple[bool, bool]:
        unknown = operation.op.is_call and operation.attributes["function"] not in self.program.functions
        return (True, True) if unknown else super().both(operation)


def hoist(b: Builder, block: Block) -> None:
    """Move what does not change in a loop of `block` in front of it, so that no tape is kept of it."""
    if any(operation.op.is_loop for operation in block.walk()):
        functions = {**(b.functions or {}), "": block}
        hoist_out_of_loops(block, KnownCalls(Program(functions, "")))


def prune(forward: Program, backward: Program, residuals: dict[Value, Value]) -> None:
    """Remove dead code from `backward`, and the residuals that it then does not use from the results of `forward`.

    `residuals` are forward values and the arguments of `backward` that take them; those that are left stay in it.
    """
    for _ in range(2):
        if not RemoveDeadCode(SureReads).apply(backward):
            break
    block = backward.block
    used = set(block.results).union(*(operation.operands for operation in block.operations))
    dead = {argument for argument in residuals.values() if argument not in used}
    block.arguments[:] = [a for a in block.arguments if a not in dead]
    for value in [v for v, argument in residuals.items() if argument in dead]:
        del residuals[value]
    forward.block.results.extend(residuals)
    RemoveDeadCode().apply(forward)
