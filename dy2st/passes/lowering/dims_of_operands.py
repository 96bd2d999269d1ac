"""Ask an operand how long it is, and not what elementwise operations make of it: that need not be there then.

Before                                              After
    %a = relu(%x)                                       %n = dim(%x) {axis=0}
    %n = dim(%a) {axis=0}                               %a = relu(%x)

An operation on elements gives as many as each of its operands has, and so does a broadcast that repeats nothing. So the
loop nest that makes `%a` can go on with what needs `%n`, such as a repeated number. It is asked in front of them, so
that `%x` is not held for it.

An argument that the block writes by index is asked before that, or the write could not take its memory.
"""

from __future__ import annotations

from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.ops.shape.shape import Broadcast, DimOf
from dy2st.passes.core.base import Pass, each_block


class DimsOfOperands(Pass):
    """Take extents from in front of elementwise operations."""

    name = "dims_of_operands"

    def apply(self, program: Program) -> bool:
        return each_block(program, _move)


def _move(block: Block) -> bool:
    return _ask_before_writes(block) | _ask_operands(block)


def _ask_before_writes(block: Block) -> bool:
    """Put extents of arguments in front of the block where they are asked for behind a write."""
    written: set[Value] = set()
    late: list[Operation] = []
    for operation in block.operations:
        if operation.op.writes is not None and operation.operands[0].operation is None:
            written.add(operation.operands[0])
        elif isinstance(operation.op, DimOf) and operation.operands[0] in written:
            late.append(operation)
    block.operations = [*late, *(o for o in block.operations if o not in late)] if late else block.operations
    return bool(late)


def _ask_operands(block: Block) -> bool:
    moved: dict[Operation, list[Operation]] = {}
    for operation in block.operations:
        first = _first(operation.operands[0]) if isinstance(operation.op, DimOf) else None
        if first is not None:
            operation.operands = [first.operands[0]]
            moved.setdefault(first, []).append(operation)
    gone = {operation for dims in moved.values() for operation in dims}
    operations = [o for o in block.operations if o not in gone]
    block.operations = [o for operation in operations for o in (*moved.get(operation, ()), operation)]
    return bool(moved)


def _first(value: Value) -> Operation | None:
    """Return the first of the elementwise operations that a value is made by; None where none does."""
    first, made = None, value.operation
    while made is not None and _keeps_extents(made, value):
        first, value = made, made.operands[0]
        made = value.operation
    return first


def _keeps_extents(operation: Operation, value: Value) -> bool:
    elementwise = operation.op.elementwise
    shape = value.type.shape if isinstance(value.type, TensorType) else None
    if isinstance(operation.op, Broadcast) and operation.operands[0].type == value.type:
        return True
    return (
        elementwise
        and bool(operation.operands)
        and all(isinstance(v.type, TensorType) and v.type.shape == shape for v in operation.operands)
    )
