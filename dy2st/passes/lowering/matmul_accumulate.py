"""Add a product of matrices to what a loop carries without writing the product down first.

Before                                              After
    while_loop(..., %dw) {                              while_loop(..., %dw) {
        %p = matmul(%x, %dy)                                %s = matmul_add(%x, %dy, %dw)
        %s = add(%dw, %p)                                   return %s
        return %s                                       }
    }

1. The product, or a reshape of it that changes no extent, is used by the addition alone.
2. The other summand is an argument of the block, as a loop hands it to its next iteration, and used there alone, so
   that its memory may be written into.
3. Both are matrices of float32 or float64.

A product whose extents do not fit is refused where the sum stands. This pass is for native code, which hands such a run
to the interpreter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.elementwise.arithmetic import Add
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.shape.shape import Reshape
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.rebuild_block import Now, rebuild

_DTYPES = ("float32", "float64")


class MatmulAccumulate(Pass):
    """Replace a sum of a carried matrix and a product by one operation."""

    name = "matmul_accumulate"

    def apply(self, program: Program) -> bool:
        entries = list(program.functions.values())  # what is carried is an argument of a block inside
        return each_block(program, lambda block: block not in entries and _accumulate(block))


def _accumulate(block: Block) -> bool:
    uses = Counter(v for operation in block.operations for v in operation.operands) + Counter(block.results)
    carried = {v for v in block.arguments if uses[v] == 1 and _is_matrix(v)}  # 2. and 3.
    fused = {add: found for add in block.operations if (found := _terms(add, carried, uses)) is not None}
    if not fused:
        return False
    dropped = {operation for product, _, chain in fused.values() for operation in (product, *chain)}

    def instead(b: Builder, operation: Operation, now: Now) -> Sequence[Value] | None:
        if operation in dropped or operation not in fused:
            return () if operation in dropped else None
        product, total, _ = fused[operation]
        return [b.emit("matmul_add", [*map(now, product.operands), total], dict(product.attributes))]

    rebuild(block, instead)
    return True


def _terms(add: Operation, carried: set[Value],
           uses: Counter[Value]) -> tuple[Operation, Value, list[Operation]] | None:  # fmt: skip
    """Return the product, the other summand, and what stands between product and sum; None for another operation."""
    if not isinstance(add.op, Add):
        return None
    for total, term in (add.operands, add.operands[::-1]):
        if total not in carried:
            continue
        chain: list[Operation] = []
        made = term.operation
        while made is not None and isinstance(made.op, Reshape) and uses[term] == 1 and _keeps_extents(made):
            chain.append(made)
            term = made.operands[0]
            made = term.operation
        if made is not None and isinstance(made.op, MatMul) and uses[term] == 1 and _is_matrix(term):  # 1.
            return made, total, chain
    return None


def _keeps_extents(reshape: Operation) -> bool:
    """Return whether one of two extents stays, so that the other one does too."""
    old, new = tensor_type(reshape.operands[0]).shape, tensor_type(reshape.results[0]).shape
    return len(old) == len(new) == 2 and any(p == q for p, q in zip(old, new, strict=True))


def _is_matrix(value: Value) -> bool:
    t = value.type
    return isinstance(t, TensorType) and t.rank == 2 and t.dtype.name in _DTYPES
