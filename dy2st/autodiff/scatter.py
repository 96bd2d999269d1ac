"""Add to what is there already in place of adding to zeros.

Before                                      After
    %z = full(0)                                %t = index_add(%so_far, %ct, %i)
    %a = index_add(%z, %ct, %i)
    %t = add(%so_far, %a)

Reading one row in each turn of a loop then costs a row a turn on the way back, not a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import TensorType

SCATTERS = ("index_add", "take_add", "scatter_nd_add")


def pour(so_far: Value | None, ct: Value, made: Sequence[Operation]) -> bool:
    """Let a cotangent that one of the operations `made` just scattered into zeros be scattered into `so_far`."""
    scatter = ct.operation
    if so_far is None or scatter is None or not any(scatter is operation for operation in made):
        return False
    return _rebase(scatter, so_far)


def pour_chain(block: Block, before: Value, total: Value) -> bool:
    """Let a finished sum of scatters into zeros start from an argument of the block, where nothing else uses its parts.

    The caller then has `total` as the sum with `before`.
    """
    uses: dict[Value, int] = {}
    for operation in block.operations:
        for value in operation.operands:
            uses[value] = uses.get(value, 0) + 1
    value, scatter = total, total.operation
    allowed = 0
    while scatter is not None and scatter.name in SCATTERS and uses.get(value, 0) == allowed:
        if _rebase(scatter, before):
            return True
        value, allowed = scatter.operands[0], 1
        scatter = value.operation
    return False


def _rebase(scatter: Operation, base: Value) -> bool:
    if scatter.name not in SCATTERS or scatter.operands[0].type != base.type or not _is_zeros(scatter.operands[0]):
        return False
    scatter.operands[0] = base
    return True


def _is_zeros(value: Value) -> bool:
    made = value.operation
    if made is None or made.name != "full" or not isinstance(value.type, TensorType):
        return False
    constant = made.operands[0].operation
    return constant is not None and constant.name == "constant" and not np.any(constant.attributes["value"])
