"""Sum products of a batch of matrices as one product, as the gradient of a matrix that a batch was multiplied by is.

Before                                              After
    %p = matmul(%x, %y) {transpose_x=true}              %a = reshape(%x)      # [b, t, m] becomes [b*t, m]
    %s = sum_to(%p)     # [b, m, n] becomes [m, n]      %c = reshape(%y)      # [b, t, n] becomes [b*t, n]
    return %s                                           %s = matmul(%a, %c) {transpose_x=true}
                                                        return %s

1. The product, or a reshape of it that keeps the batch, is used by the sum alone, and the sum takes away the batch.
2. Its inner extents are equal by their types, so it cannot raise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.shape.shape import Reshape, SumTo
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.rebuild_block import Now, rebuild

_PLAIN = {"transpose_x": True, "transpose_y": False}


class BatchedWeightGradient(Pass):
    """Replace sums over the batch of a product by products of the rows of all matrices."""

    name = "batched_wgrad"

    def apply(self, program: Program) -> bool:
        return each_block(program, _sum)


def _sum(block: Block) -> bool:
    uses = Counter(v for operation in block.operations for v in operation.operands) + Counter(block.results)
    found = {o: chain for o in block.operations if (chain := _chain(o, uses)) is not None}
    if not found:
        return False
    dropped = {operation for chain in found.values() for operation in chain}

    def instead(b: Builder, operation: Operation, now: Now) -> Sequence[Value] | None:
        if operation in dropped or operation not in found:
            return () if operation in dropped else None
        left, right = (_rows(b, now(v)) for v in found[operation][-1].operands)
        made = b.emit("matmul", [left, right], _PLAIN)
        return [b.emit("reshape", [made, *operation.operands[1:]], {"shape": operation.attributes["shape"]})]

    rebuild(block, instead)
    return True


def _chain(total: Operation, uses: Counter[Value]) -> list[Operation] | None:
    """Return what a sum over a batch is of, the product last; None for another operation."""
    if not isinstance(total.op, SumTo):
        return None
    value, chain = total.operands[0], list[Operation]()
    shape = tensor_type(value).shape
    if len(shape) < 3 or shape[-2:] != tensor_type(total.results[0]).shape:
        return None
    while (made := value.operation) is not None and isinstance(made.op, (MatMul, Reshape)) and uses[value] == 1:  # 1.
        chain.append(made)
        if isinstance(made.op, MatMul):
            return chain if _fits(made) else None
        value = made.operands[0]
        if len(tensor_type(value).shape) != len(shape) or tensor_type(value).shape[:-2] != shape[:-2]:
            return None
    return None


def _fits(product: Operation) -> bool:
    x, y = (tensor_type(v).shape for v in product.operands)
    return product.attributes == _PLAIN and x[-2] == y[-2]  # 2.


def _rows(b: Builder, value: Value) -> Value:
    """Emit a matrix of the rows of all matrices."""
    *lead, last = [b.emit("dim", [value], {"axis": axis}) for axis in range(tensor_type(value).rank)]
    count = lead[0]
    for extent in lead[1:]:
        count = b.scalar_mul(count, extent)
    return b.shaped("reshape", [value], [count, last])
