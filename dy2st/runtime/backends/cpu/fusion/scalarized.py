"""Which operations are written on the registers of small tensors, element by element (ops/scalarized.py writes them).

That is so where all tensors are small, or of rank 0, and nothing but their elements is left to the run.
"""

from __future__ import annotations

import math

from dy2st.ir.program import Operation, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.scalar_unary import Item
from dy2st.ops.indexing.getitem import IndexAdd
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.shape.shape import DimOf, SumTo
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers, is_small, known_extents
from dy2st.runtime.backends.cpu.vector_ops.elementwise import computes


def is_in_registers(operation: Operation) -> bool:
    """Return whether an operation is written on registers, one an element."""
    values = (*operation.operands, *operation.results)
    if not any(is_small(v.type) for v in values) or not all(in_registers(v.type) for v in values):
        return False
    op = operation.op
    if op.is_constant or op.splat is not None or isinstance(op, DimOf):
        return True
    if op.is_data_movement or isinstance(op, IndexAdd):
        return _is_known(operation)
    if isinstance(op, Item):
        return math.prod(known_extents(tensor_type(operation.operands[0]))) == 1
    if op.monoid:
        return _is_known(operation) and tensor_type(operation.operands[0]).rank > 0 and _fits(operation)
    if isinstance(op, MatMul):
        return _is_known(operation) and not tensor_type(operation.operands[0]).dtype.is_bool
    if not op.elementwise:
        return False
    shapes = {v.type.shape for v in values if isinstance(v.type, TensorType)}
    return len(shapes) == 1 and not any(isinstance(v.type, ScalarType) for v in values) and computes(operation)


def _fits(operation: Operation) -> bool:
    """Return whether what a `sum_to` sums up to can be repeated to its operand; behind what raised it may not be."""
    if not isinstance(operation.op, SumTo):
        return True
    shape, kept = (known_extents(tensor_type(v)) for v in (operation.operands[0], operation.results[0]))
    lead = len(shape) - len(kept)
    return lead >= 0 and all(k in (1, e) for e, k in zip(shape[lead:], kept, strict=True))


def _is_known(operation: Operation) -> bool:
    """Return whether the operation cannot raise, and its numbers are known."""
    numbers = [v.type.extent for v in operation.operands if isinstance(v.type, ScalarType)]
    if not all(isinstance(n, int) for n in numbers):
        return False
    spec = operation.attributes.get("spec", ())
    if any(part[0] not in ("int", "slice", "new") or "?" in part for part in spec):
        return False
    return not operation.op.can_raise([v.type for v in operation.operands], operation.attributes)
