"""A Program on CUDA: a plan whose groups are launches, and whose other operations are CuPy's functions.

Branches and loops are the plan's: their test is read by the host. A run gives its results before the device has made
them; nothing waits but who reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import TensorType, Type
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cuda.fusion import steps
from dy2st.runtime.backends.cuda.launcher import Counts, Launcher
from dy2st.runtime.interpreter.planned import compile_plan


class _Group(OpDef):
    """One group, as an operation of a Program that only a plan sees."""

    name = "group"
    saveable = False
    fresh = True
    may_raise = True

    def __init__(self, group: FusedGroup, of: CudaProgram):
        self.group, self._of = group, of

    def infer(self, *types: Any, **attributes: Any) -> Type | tuple[Type | None, ...]:
        made = tuple(v.type for v in self.group.results)
        return made[0] if len(made) == 1 else made

    def compile(self, xp: Any) -> Callable[..., Any]:
        """Return what runs the group."""
        made = Launcher(self.group, xp, self._of.counts)
        self._of.launchers.append(made)
        return made


class CudaProgram:
    """A Program that is ready to run on arrays of CuPy."""

    def __init__(self, program: Program, xp: Any):
        self.counts, self.runs = Counts(), 0
        self.by_cupy: Counter[str] = Counter()
        """The operations of the text that are CuPy's functions, by op."""
        self.launchers: list[Launcher] = []
        self._program = prepared(program)
        for block in self._program.functions.values():
            self._with_groups(block)
        self._plan = compile_plan(self._program, xp)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        self.runs += 1
        return self._plan.run(inputs)

    def _with_groups(self, block: Block) -> None:
        operations: list[Operation] = []
        for step in steps(block):
            if isinstance(step, FusedGroup):
                operations.append(self._operation(step, block))
                continue
            for inner in step.blocks:
                self._with_groups(inner)
            operations.append(step)
            if not _is_host_step(step):
                self.by_cupy[step.op.name] += 1
        block.operations = operations

    def _operation(self, group: FusedGroup, block: Block) -> Operation:
        made = Operation(_Group(group, self), group.operands, {}, [], group.members[0].location)
        made.results.extend(group.results)
        for value in group.results:
            _made_by(value, block, made)
        return made


def _made_by(value: Value, block: Block, operation: Operation) -> None:
    value.block, value.operation = block, operation


def _is_host_step(operation: Operation) -> bool:
    """Return whether an operation launches nothing: control flow, views, and what is done with numbers and lists."""
    op = operation.op
    if op.blocks or op.is_call or op.is_constant or op.is_view or op.renames:
        return True
    return not any(isinstance(v.type, TensorType) for v in operation.results)
