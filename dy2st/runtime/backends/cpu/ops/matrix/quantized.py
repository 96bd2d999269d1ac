"""Products with weights of integers."""

from __future__ import annotations

from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, negation, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import FLOATS
from dy2st.runtime.backends.cpu.ops.matrix.matmul import After, Made
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, scratch_bytes


@rule("quantized_matmul")
def quantized_matmul(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a product in float32; `eval` says which extents differ, and computes in other dtypes."""
    return quantized_with_parts(w, operation, operands)


def quantized_with_parts(
    w: FunctionEmitter, operation: Operation, operands: list[Components], after: After | None = None
) -> Made:
    """Write a product, and what is done with its parts."""
    x, weight, scale = operation.operands
    dtype, f = tensor_type(x).dtype, w.f
    if FLOATS.get(dtype.name) != "f32":
        return host_rule(w, operation, operands)
    bits, group = operation.attributes["bits"], operation.attributes["group"]
    (m, k), (rows, inner) = extents(x, operands[0]), extents(weight, operands[1])
    *groups, n = extents(scale, operands[2])
    in_bytes = rows if bits == 8 else times(f, rows, 2)
    pairs = [(k, inner), (n, in_bytes), *((times(f, g, group), k) for g in groups)]
    apart = [pair for pair in pairs if pair[0] != pair[1]]
    if apart:
        fine = all_of(f, *(compare(f, "eq", one, other) for one, other in apart))
        with w.unlikely(negation(f, fine), "wrong"):
            host_rule(w, operation, operands)
    name = f"gemm.f32.quantized{bits}"
    kernel, size = w.library(name), f.call("i64", w.library(f"{name}.scratch"), *(f"i64 {e}" for e in (m, n, k)))
    made = allocate(w, dtype, [m, n])
    block, scratch = scratch_bytes(w, size)
    places = [f"ptr {c[1]}" for c in (*operands, made)]
    f.call("void", kernel, *places, *(f"i64 {e}" for e in (m, n, k, group or k)), f"ptr {scratch}",
           f"ptr {'null' if after is None else after(made)}", "i64 0")  # fmt: skip
    f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return [made]
