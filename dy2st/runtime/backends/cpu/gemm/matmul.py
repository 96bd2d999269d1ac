"""The product of two matrices, C = A B or C += A B, of any extents and transposes, as LLVM functions."""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.dot_product import dot_product
from dy2st.runtime.backends.cpu.gemm.epilogue import AFTER, finished
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.parallel import shared_packing, shared_panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, any_of, compare, least, minus, plus, rounded_up, times

_SKINNY = 8
"""Up to so many rows, packing B would cost more than it saves."""
_SMALL = 1 << 20
"""Up to so many bytes, a B that lies in rows stays in cache and is read as it lies; a few rows read more so."""
_FEW_ROWS, _FEW_STEPS = 128, 1024
_SHAPE = (("i64", "%m"), ("i64", "%n"), ("i64", "%k"))
_MATRICES = (("ptr", "%a"), ("i64", "%lda"), ("ptr", "%b"), ("i64", "%ldb"), ("ptr", "%c"), ("i64", "%ldc"), *_SHAPE)


@functools.cache
def matmul_kernel(dtype: str, transpose_a: bool, transpose_b: bool, target: Target) -> Definition:
    """Return the function `void @dy2st.gemm.f32.nt(a, lda, b, ldb, c, ldc, m, n, k, scratch, accumulate, after, top)`.

    Matrices lie in rows; A is m x k (k x m where transposed), B is k x n (n x k), C is m x n; `lda`, `ldb` and `ldc`
    are the elements from one row to the next. `scratch` has the bytes that `scratch_kernel`'s function tells, aligned
    to 64. Nothing outside of the matrices is touched. `after` and `top` say what is done with the result (epilogue.py).
    """
    t = tile(dtype, target)
    name = _name(dtype, transpose_a, transpose_b)
    f = LLVMFunction(
        name, (*_MATRICES, ("ptr", "%scratch"), ("i1", "%accumulate"), *AFTER), linkage="internal", also="nounwind"
    )
    a_row, a_step = ("%size", "%lda_bytes") if transpose_a else ("%lda_bytes", "%size")
    f.do(f"%size = add i64 0, {t.size}")
    for matrix in "abc":
        f.do(f"%ld{matrix}_bytes = mul i64 %ld{matrix}, {t.size}")
    dots, by_panels, shared = dot_product(t), panels(t), shared_panels(t)
    _matrix_times_vector(f, dots, by_panels, transpose_a, transpose_b)
    if not transpose_a and transpose_b:
        skinny = compare(f, "sle", "%m", _SKINNY)
        with f.when(skinny):
            f.call("void", f"@{dots.name}", "ptr %a", "i64 %lda_bytes", "ptr %b", "i64 %ldb_bytes", "ptr %c",
                   "i64 %ldc_bytes", "i64 %size", "i64 %m", "i64 %n", "i64 %k", "i1 %accumulate")  # fmt: skip
            _end(f)
    as_it_lies = _is_read_as_it_lies(f, t, transpose_b)
    with f.when(as_it_lies):
        f.call("void", f"@{shared.name}", "ptr %a", f"i64 {a_row}", f"i64 {a_step}", "ptr %b", "i64 %ldb_bytes",
               "ptr %c", "i64 %ldc_bytes", "i64 %m", "i64 %n", "i64 %k", "i1 %accumulate", "i1 false",
               "ptr %after", "i64 %top", "i64 0")  # fmt: skip
        f.ret()
    pack = shared_packing(t, transpose_b)
    _blocked(f, t, pack, shared, (a_row, a_step), transpose_b)
    f.ret()
    return Definition(name, f.text(), (dots, by_panels, shared, pack))


@functools.cache
def scratch_kernel(dtype: str, transpose_a: bool, transpose_b: bool, target: Target) -> Definition:
    """Return the function `i64 @dy2st.gemm.f32.nt.scratch(m, n, k)`: the bytes of scratch that a product needs."""
    t = tile(dtype, target)
    name = f"{_name(dtype, transpose_a, transpose_b)}.scratch"
    f = LLVMFunction(name, _SHAPE, "i64", linkage="internal", also="nounwind alwaysinline")
    columns = least(f, rounded_up(f, "%n", t.lanes), t.width)
    steps = least(f, "%k", t.depth)
    size = times(f, times(f, columns, steps), t.size)
    none = _is_read_as_it_lies(f, t, transpose_b)
    if not transpose_a and transpose_b:
        none = any_of(f, none, compare(f, "sle", "%m", _SKINNY))
    f.ret("i64", f.value(f"select i1 {none}, i64 0, i64 {size}"))
    return Definition(name, f.text())


def _is_read_as_it_lies(f: LLVMFunction, t: Tile, transpose_b: bool) -> str:
    """Write whether B is not packed: then the product needs no scratch."""
    empty = compare(f, "eq", "%k", 0)
    if transpose_b:
        return empty
    small = compare(f, "sle", times(f, "%n", "%k", t.size), _SMALL)
    few = all_of(f, compare(f, "sle", "%m", _FEW_ROWS), compare(f, "sle", "%k", _FEW_STEPS))
    return any_of(f, empty, small, few, compare(f, "sle", "%m", _SKINNY))


def _name(dtype: str, transpose_a: bool, transpose_b: bool) -> str:
    return f"dy2st.gemm.{dtype}.{'t' if transpose_a else 'n'}{'t' if transpose_b else 'n'}"


def _matrix_times_vector(f: LLVMFunction, dots: Definition, by_panels: Definition, transpose_a: bool,
                         transpose_b: bool) -> None:  # fmt: skip
    """Write the case n = 1 as the vector times the transposed matrix, where the vector and the result allow it."""
    column = compare(f, "eq", "%n", 1)
    if transpose_a:
        dense = all_of(f, column, compare(f, "eq", "%ldc", 1))
        b_step = "%size" if transpose_b else "%ldb_bytes"
        with f.when(dense):
            f.call("void", f"@{by_panels.name}", "ptr %b", "i64 0", f"i64 {b_step}", "ptr %a", "i64 %lda_bytes",
                   "ptr %c", "i64 0", "i64 1", "i64 %m", "i64 %k", "i1 %accumulate", "i1 false")  # fmt: skip
            _end(f)
        return
    dense = column if transpose_b else all_of(f, column, compare(f, "eq", "%ldb", 1))
    with f.when(dense):
        f.call("void", f"@{dots.name}", "ptr %b", "i64 0", "ptr %a", "i64 %lda_bytes", "ptr %c", "i64 0",
               "i64 %ldc_bytes", "i64 1", "i64 %m", "i64 %k", "i1 %accumulate")  # fmt: skip
        _end(f)


def _end(f: LLVMFunction) -> None:
    """Write the end of a product that is finished as a whole."""
    finished(f, ("0", "%m"), ("0", "%n"))
    f.ret()


def _blocked(f: LLVMFunction, t: Tile, pack: Definition, shared: Definition, a_strides: tuple[str, str],
             transpose_b: bool) -> None:  # fmt: skip
    """Write the loops over blocks of B, packed one by one."""
    a_row, a_step = a_strides
    b_along_k, b_along_n = ("%size", "%ldb_bytes") if transpose_b else ("%ldb_bytes", "%size")
    with f.loop("%n", step=t.width) as j, f.loop("%k", step=t.depth) as p:
        columns = least(f, minus(f, "%n", j), t.width)
        steps = least(f, minus(f, "%k", p), t.depth)
        b = f.offset(f.offset("%b", times(f, p, b_along_k)), times(f, j, b_along_n))
        f.call("void", f"@{pack.name}", f"ptr {b}", "i64 %ldb_bytes", f"i64 {columns}", f"i64 {steps}", "ptr %scratch")
        later = any_of(f, compare(f, "sgt", p, 0), "%accumulate")
        a = f.offset("%a", times(f, p, a_step))
        c = f.offset("%c", times(f, j, "%size"))
        last = compare(f, "sge", plus(f, p, steps), "%k")
        f.call("void", f"@{shared.name}", f"ptr {a}", f"i64 {a_row}", f"i64 {a_step}", "ptr %scratch", "i64 0",
               f"ptr {c}", "i64 %ldc_bytes", "i64 %m", f"i64 {columns}", f"i64 {steps}", f"i1 {later}", "i1 true",
               f"ptr {f.value(f'select i1 {last}, ptr %after, ptr null')}", "i64 %top", f"i64 {j}")  # fmt: skip
