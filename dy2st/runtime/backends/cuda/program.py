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
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.ops.shape.shape import DimOf
from dy2st.records import field, record
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


@record(frozen=True)
class Report:
    """How one Program runs on CUDA; launches and bytes are those of an average run, of groups alone.

    >>> print(Report(groups=3, launches=4, bytes=4096, by_cupy=Counter(matmul=2), host_reads=Counter(while_loop=1)))
    3 groups of operations in 4 launches and 4096 bytes a run; CuPy for 2 matmul; the host reads for while_loop
    """

    groups: int
    launches: float = 0
    bytes: float = 0
    by_cupy: Counter[str] = field(default_factory=Counter[str])
    """Operations of the text that are CuPy's functions, by op."""
    host_reads: Counter[str] = field(default_factory=Counter[str])
    """Operations of the text for which the host waits until the device is done, by op."""
    elsewhere: int = 0
    """How often the members of a group ran one by one, by CuPy."""

    def __str__(self) -> str:
        parts = [f"{self.groups} groups of operations in {self.launches:.4g} launches and {self.bytes:.0f} bytes a run"]
        for what, counted in (("CuPy for", self.by_cupy), ("the host reads for", self.host_reads)):
            if counted:
                parts.append(f"{what} {', '.join(f'{n} {op}' if n > 1 else op for op, n in sorted(counted.items()))}")
        if self.elsewhere:
            parts.append(f"{self.elsewhere} times a group ran operation by operation")
        return "; ".join(parts)


class CudaProgram:
    """A Program that is ready to run on arrays of CuPy."""

    def __init__(self, program: Program, xp: Any):
        self.counts, self.runs = Counts(), 0
        self.by_cupy: Counter[str] = Counter()
        """The operations of the text that are CuPy's functions, by op."""
        self.host_reads: Counter[str] = Counter()
        self.launchers: list[Launcher] = []
        self._program = prepared(program)
        for block in self._program.functions.values():
            self._with_groups(block)
        self._plan = compile_plan(self._program, xp)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on arrays, numbers, lists and variants; return the results of the entry function."""
        self.runs += 1
        return self._plan.run(inputs)

    def report(self) -> Report:
        """Return how the Program runs."""
        runs, done = max(1, self.runs), self.counts
        figures = done.launches / runs, done.bytes / runs
        return Report(len(self.launchers), *figures, self.by_cupy, self.host_reads, done.elsewhere)

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
            if _is_host_read(step):
                self.host_reads[step.op.name] += 1
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


def _is_host_read(operation: Operation) -> bool:
    """Return whether the host waits for the device: for the test of a branch or a loop, or a number in a tensor."""
    op = operation.op
    if op.is_branch or (op.is_loop and not op.is_counted):
        return isinstance(operation.operands[0].type, TensorType)
    reads = any(isinstance(v.type, TensorType) for v in operation.operands)
    made = any(isinstance(v.type, ScalarType) for v in operation.results)
    return reads and made and not (isinstance(op, DimOf) or op.tells_structure or op.blocks or op.is_call)
