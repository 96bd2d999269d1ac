"""Broadcasts that repeat whole matrices for products of batches: those are no part of a loop nest, but views."""

from __future__ import annotations

from dy2st.ir.program import Block, Operation
from dy2st.ir.types import TensorType
from dy2st.ops.linalg.matmul import MatMul, MatMulAdd
from dy2st.ops.shape.shape import Broadcast


def repeated_matrices(block: Block) -> set[Operation]:
    """Return the broadcasts that repeat matrices for products alone, which read one matrix many times."""
    found = {o.results[0]: o for o in block.operations if isinstance(o.op, Broadcast) and repeats_whole(o)}
    if not found:
        return set()
    for operation in block.operations:
        if not isinstance(operation.op, (MatMul, MatMulAdd)):
            for value in operation.operands:
                found.pop(value, None)
    for value in block.results:
        found.pop(value, None)
    return set(found.values())


def repeats_whole(broadcast: Operation) -> bool:
    """Return whether a broadcast puts axes in front of a tensor of matrices and repeats it along those alone."""
    value, made = broadcast.operands[0].type, broadcast.results[0].type
    if not isinstance(value, TensorType) or not isinstance(made, TensorType):
        return False
    return 2 <= value.rank < made.rank and value.shape == made.shape[made.rank - value.rank :]
