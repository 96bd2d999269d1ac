"""Write weights of integers as numbers by small operations, for what reads all of them: convolutions, derivatives.

Before                                         After
    %w = dequantize(%q, %s) {bits=8, group=0}      %w = cast(%q) * %s, one scale for each row
    %w = dequantize(%q, %s) {bits=4, group=0}      %high = floor(cast(%q) / 16), %low = %q - 16 %high, 16 less from
                                                   8 on; %w = stack(%low, %high) * %s, a row of each by turns

A product with such a weight stays: a kernel reads its integers (gemm/quantized.py), in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, float16, float32
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type


def numbers(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Emit `dequantize` by small operations; None where the types do not say that scales and integers fit."""
    weight, scale = operation.operands
    if operation.op.can_raise([weight.type, scale.type], operation.attributes):
        return None
    dtype, group = tensor_type(scale).dtype, operation.attributes["group"]
    integers = b.cast(weight, dtype=dtype)
    if operation.attributes["bits"] == 4:
        integers = _unpacked(b, integers)
    shape = b.shape(integers)
    if not group:
        column = b.shaped("reshape", [scale], [shape[0], *(1 for _ in shape[1:])])
        return [b.mul(integers, column)]
    groups, rows = b.shape(scale)
    column = b.shaped("reshape", [b.transpose(scale, perm=(1, 0))], [rows, groups, 1])
    made = b.mul(b.shaped("reshape", [integers], [rows, groups, group]), column)
    return [b.shaped("reshape", [made], shape)]


def _unpacked(b: Builder, both: Value) -> Value:
    """Emit the two numbers of each byte, which is a number already, as rows by turns."""
    high = b.floor(b.mul(both, 0.0625))
    low = b.sub(both, b.mul(high, 16.0))
    low = b.sub(low, b.mul(b.floor(b.mul(b.add(low, 8.0), 0.0625)), 16.0))
    rows, *rest = tensor_type(both).shape
    return b.shaped("reshape", [b.stack(low, high, axis=1)], [b.extent(rows * 2), *map(b.extent, rest)])


def product(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Emit a product of float16 in float32, as `eval` has it."""
    x, weight, scale = operation.operands
    if tensor_type(x).dtype is not float16:
        return None
    wide: DType = float32
    made = b.operation(operation.op, [b.cast(x, dtype=wide), weight, b.cast(scale, dtype=wide)], operation.attributes)
    return [b.cast(made.results[0], dtype=float16)]
