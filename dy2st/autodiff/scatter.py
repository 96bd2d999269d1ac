"""Add to what is there already in place of adding to zeros.

Before                                      After
    %z = full(0)                                %t = index_add(%so_far, %ct, %i)
    %a = index_add(%z, %ct, %i)
    %t = add(%so_far, %a)

Reading one row in each iteration of a loop then costs a row an iteration on the way back, not a matrix. Where %so_far
is an optional that may not be there yet, the zeros are made under a `cond`, the first time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.autodiff.cotangents import branch_on, may_miss, payload_of, set_flag
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import TensorType, VariantType
from dy2st.ops.core.constant import Constant, Full
from dy2st.ops.core.transpose_helpers import zeros_of

Functions = dict[str, Block] | None


def reads_part(operation: Operation, value: Value, functions: Functions, inside: tuple[str, ...] = ()) -> bool:
    """Return whether an operation, one in its blocks or in the function that it calls reads part of a tensor."""
    if hasattr(operation.op, "adds"):
        return operation.operands[0] is value
    blocks = operation.blocks
    if operation.op.is_call:
        name = operation.attributes["function"]
        blocks = [functions[name]] if functions is not None and name in functions and name not in inside else []
        inside = (*inside, name)
    for block in blocks:
        for argument, operand in zip(reversed(block.arguments), reversed(operation.operands), strict=False):
            if operand is value and part_is_read(block, argument, functions, inside):
                return True
    return False


def part_is_read(block: Block, value: Value, functions: Functions, inside: tuple[str, ...] = ()) -> bool:
    """Return whether an operation of a block reads part of a tensor."""
    return any(reads_part(o, value, functions, inside) for o in block.operations if value in o.operands)


def pour(b: Builder, so_far: Value | None, ct: Value, operand: Value, made: Sequence[Operation]) -> bool:
    """Let a cotangent that one of the operations `made` just scattered into zeros be scattered into `so_far`."""
    scatter = ct.operation
    if so_far is None or scatter is None or not any(scatter is operation for operation in made):
        return False
    if not may_miss(so_far, operand) or not isinstance(so_far.type, VariantType):
        return _rebase(scatter, so_far)
    base = scatter.operands[0]
    if not scatter.op.accumulates or so_far.type.alternatives[1] != base.type or not _is_zeros(base):
        return False
    then, other = b.child(), b.child()
    found = branch_on(b, set_flag(b, so_far), then, other, [payload_of(then, so_far, operand)],
                      [zeros_of(other, operand)], [operand.type])  # fmt: skip
    b.block.operations.remove(scatter)  # to stand behind what it starts from now
    b.block.operations.append(scatter)
    assert found[0] is not None
    scatter.operands[0] = found[0]
    return True


def _rebase(scatter: Operation, base: Value) -> bool:
    if not scatter.op.accumulates or scatter.operands[0].type != base.type or not _is_zeros(scatter.operands[0]):
        return False
    scatter.operands[0] = base
    return True


def _is_zeros(value: Value) -> bool:
    made = value.operation
    if made is None or not isinstance(made.op, Full) or not isinstance(value.type, TensorType):
        return False
    constant = made.operands[0].operation
    return constant is not None and isinstance(constant.op, Constant) and not np.any(constant.attributes["value"])
