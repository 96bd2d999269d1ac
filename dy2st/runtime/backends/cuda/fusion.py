"""Which operations become one group on a GPU: the CPU's fusion, where nothing stands in registers of small tensors."""

from __future__ import annotations

from dy2st.ir.program import Block, Operation
from dy2st.runtime.backends.cpu.fusion.grouping import Schedule
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup

Step = Operation | FusedGroup


class _DeviceSchedule(Schedule):
    def is_fusible(self, operation: Operation) -> bool:
        return not operation.op.is_gather and super().is_fusible(operation)

    def is_in_registers(self, operation: Operation) -> bool:
        return False

    def is_better_alone(self, group: FusedGroup) -> bool:
        return False


def steps(block: Block) -> list[Step]:
    """Return the steps of a block in the order in which they run."""
    return _DeviceSchedule(block).steps
