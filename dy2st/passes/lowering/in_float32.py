"""Write operations on bfloat16 as operations on float32 between casts, as `ops/core/rounded.py` runs them.

Before                                    After
    %y: bfloat16[N] = softmax(%x)             %a: float32[N] = cast(%x)
    return %y                                 %b: float32[N] = softmax(%a)
                                              %y: bfloat16[N] = cast(%b)
                                              return %y

1. An elementwise operation stays: loop nests have bfloat16 in registers of float32, and round after each operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import bfloat16, float32
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.rounded import is_low
from dy2st.passes.core.base import Pass, each_block


class InFloat32(Pass):
    """Let code generators meet bfloat16 only where elements are loaded, stored and moved."""

    name = "in_float32"

    def apply(self, program: Program) -> bool:
        return each_block(program, _widen)


def _widen(block: Block) -> bool:
    if not any(map(_is_widened, block.operations)):
        return False
    values: dict[Value, Value] = {}
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        operation.operands = [values.get(v, v) for v in operation.operands]
        if not _is_widened(operation):
            b.adopt(operation)
            continue
        b.location = operation.location
        values.update(zip(operation.results, _between_casts(b, operation), strict=True))
    block.results = [values.get(v, v) for v in block.results]
    return True


def _is_widened(operation: Operation) -> bool:
    return not operation.op.elementwise and is_low(operation)  # 1


def _between_casts(b: Builder, operation: Operation) -> Sequence[Value]:
    wide = [b.cast(v, dtype=float32) if _is_of_bfloat16(v) else v for v in operation.operands]
    attributes = {name: float32 if x is bfloat16 else x for name, x in operation.attributes.items()}
    made = b.operation(operation.op, wide, attributes)
    for value, old in zip(made.results, operation.results, strict=True):
        if isinstance(value.type, TensorType) and isinstance(old.type, TensorType):
            b.retype(value, TensorType(value.type.dtype, old.type.shape))
    return [
        b.cast(v, dtype=bfloat16) if _is_of_bfloat16(old) else v
        for v, old in zip(made.results, operation.results, strict=True)
    ]


def _is_of_bfloat16(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype is bfloat16
