"""Products of matrices, and of batches of them."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.cpu import blas
from dy2st.runtime.cpu.memory import BLAS
from dy2st.runtime.cpu.representation import Components
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.rules.tensors import allocate, extents, product
from dy2st.runtime.cpu.writer import Writer, host_rule

Made = Sequence[Components]


@rule("matmul")
def matmul(w: Writer, operation: Operation, operands: list[Components]) -> Made:
    """Write a product by OpenBLAS; `eval` says that inner extents differ."""
    x, y = operation.operands
    t = tensor_type(x)
    if t.dtype.name not in ("float32", "float64") or blas.address("sgemm") is None:
        return host_rule(w, operation, operands)
    left, right = extents(x, operands[0]), extents(y, operands[1])
    swap = operation.attributes["transpose_x"], operation.attributes["transpose_y"]
    rows, inner = (left[-1], left[-2]) if swap[0] else (left[-2], left[-1])
    again, columns = (right[-1], right[-2]) if swap[1] else (right[-2], right[-1])
    fine = w.f.value(f"icmp eq i64 {inner}, {again}")
    for a, b in zip(left[:-2], right[:-2], strict=True):
        fine = w.f.value(f"and i1 {fine}, {w.f.value(f'icmp eq i64 {a}, {b}')}")

    def fast() -> Made:
        made = allocate(w, t.dtype, [*left[:-2], rows, columns])
        one = product(w, [rows, columns])
        with w.f.loop(product(w, left[:-2]), hint="batch") as i:
            sizes = (product(w, [rows, inner]), product(w, [inner, columns]), one)
            a, b, c = (
                w.f.offset(base, w.f.value(f"mul i64 {i}, {product(w, [size, str(t.dtype.itemsize)])}"))
                for base, size in zip((operands[0][1], operands[1][1], made[1]), sizes, strict=True)
            )
            _gemm(w, t.dtype.name, swap, (rows, columns, inner), (a, left[-1]), (b, right[-1]), (c, columns))
        return [made]

    return w.guarded(operation, operands, fine, fast)


def _gemm(
    w: Writer, dtype: str, swap: tuple[bool, bool], sizes: tuple[str, str, str], a: tuple[str, str], b: tuple[str, str],
    c: tuple[str, str],
) -> None:  # fmt: skip
    kind, at = ("float", 0) if dtype == "float32" else ("double", 1)
    flags = [blas.TRANSPOSED if swapped else blas.PLAIN for swapped in swap]
    table = w.f.load("ptr", w.f.offset("%context", BLAS))
    function = w.f.load("ptr", w.f.offset(table, 8 * at))
    least = [w.f.call("i64", "@llvm.smax.i64", f"i64 {n}", "i64 1") for n in (a[1], b[1], c[1])]
    w.f.call(
        "void", function, f"i32 {blas.ROW_MAJOR}", *(f"i32 {flag}" for flag in flags), *(f"i64 {n}" for n in sizes),
        f"{kind} 1.0", f"ptr {a[0]}", f"i64 {least[0]}", f"ptr {b[0]}", f"i64 {least[1]}", f"{kind} 0.0", f"ptr {c[0]}",
        f"i64 {least[2]}",
    )  # fmt: skip
