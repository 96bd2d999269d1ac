"""Which operations become one group on a GPU: the CPU's fusion, and numbers, which stand in memory here.

The CPU computes with tensors of rank 0 in registers. Here they stand in memory, and operations on them are put together
to groups of one element: each waits for the first step that reads it, or joins an earlier group where all that it reads
is there.
"""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.fusion.grouping import Schedule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.fusion.observable_effects import can_raise
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register
from dy2st.runtime.backends.cpu.vector_ops.elementwise import computes

Step = Operation | FusedGroup
NUMBERS = (1,)
"""The space of a group of numbers."""
_LATER = 1 << 60


class _DeviceSchedule(Schedule):
    def is_fusible(self, operation: Operation) -> bool:
        return not operation.op.is_gather and super().is_fusible(operation)

    def is_in_registers(self, operation: Operation) -> bool:
        return False

    def is_better_alone(self, group: FusedGroup) -> bool:
        return False


def steps(block: Block) -> list[Step]:
    """Return the steps of a block in the order in which they run."""
    made: list[Step | list[Operation]] = []
    where: dict[Value, int] = {}
    """The step that makes a value; those that are still to come stand behind all."""
    waiting: list[Operation] = []

    def place(numbers: list[Operation], at: int) -> None:
        where.update((o.results[0], at) for o in numbers)

    for step in _DeviceSchedule(block).steps:
        if isinstance(step, Operation) and _is_of_numbers(step):
            known = max((where.get(v, -1) for v in step.operands), default=-1)
            early = next((i for i, m in enumerate(made) if isinstance(m, list) and i >= known), None)
            into = waiting if early is None else made[early]
            assert isinstance(into, list)
            into.append(step)
            place([step], _LATER if early is None else early)
            continue
        if any(where.get(v) == _LATER for v in step.operands):
            place(waiting, len(made))
            made.append(waiting)
            waiting = []
        where.update((v, len(made)) for v in step.results)
        made.append(step)
    return _with_results([*made, waiting], block)


def _with_results(made: list[Step | list[Operation]], block: Block) -> list[Step]:
    """Return the steps with operations on numbers as groups, which know what others read of them."""
    flat = [step for m in made for step in (_numbers(m) if isinstance(m, list) else [m])]
    wanted = {*block.results, *(v for step in flat for v in step.operands)}
    for step in flat:
        if isinstance(step, FusedGroup) and step.space is NUMBERS:
            step.results = [v for o in step.members for v in o.results if v in wanted]
    return flat


def _numbers(operations: list[Operation]) -> list[Step]:
    """Return operations on numbers as a group, if there are any."""
    if not operations:
        return []
    made = FusedGroup(NUMBERS, outer=0, members=operations)
    results = {o.results[0] for o in operations}
    read = dict.fromkeys(v for o in operations for v in o.operands)
    made.operands = [v for v in read if v not in results]
    made.maps = dict.fromkeys((*read, *results), ())
    return [made]


def _is_of_numbers(operation: Operation) -> bool:
    """Return whether an operation computes a number of numbers, all of them tensors of rank 0."""
    values = (*operation.operands, *operation.results)
    if not operation.op.elementwise or operation.op.random_elementwise or len(operation.results) != 1:
        return False
    if not all(isinstance(v.type, TensorType) and in_register(v.type) for v in values):
        return False
    return computes(operation) and not can_raise(operation)
