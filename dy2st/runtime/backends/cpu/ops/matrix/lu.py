"""`lu`: Gaussian elimination with row exchanges, a matrix of a batch at a time, by the arithmetic of the op's `eval`.

Each number comes of the same products and differences in the same order, so the bits are those of `eval`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, int32
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import copy, split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind
from dy2st.runtime.backends.cpu.ops.indexing.advanced_indexing import element_at
from dy2st.runtime.backends.cpu.ops.numpy_ufunc_loops import matrix_shape
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, product
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element

_COST = 300
"""How many picoseconds a product that is subtracted takes, roughly."""


@rule("lu")
def eliminate(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Sequence[Components]:
    """Write both triangular factors in one matrix, and the numbers of the exchanged rows."""
    (value,), dtype = operation.operands, tensor_type(operation.operands[0]).dtype
    if dtype.name not in ("float32", "float64"):
        return host_rule(w, operation, operands)
    batch, (rows, columns) = matrix_shape(value, operands[0], 2)
    k = least(w.f, rows, columns)
    packed, pivots = allocate(w, dtype, [*batch, rows, columns]), allocate(w, int32, [*batch, k])
    copy(w, packed[1], operands[0][1], product(w, [*batch, rows, columns, str(dtype.itemsize)]))
    extents = (("count", product(w, batch)), ("rows", rows), ("columns", columns), ("k", k))
    name = split_routine(
        w, f"lu.{dtype.name}", [("ptr", "%a"), ("ptr", "%pivots"), *(("i64", f"%{n}") for n, _ in extents)],
        lambda f: ("%count", times(f, "%rows", "%columns", "%k", _COST)), lambda f: _matrices(f, dtype),
    )  # fmt: skip
    w.f.call("void", name, f"ptr {packed[1]}", f"ptr {pivots[1]}", *(f"i64 {n}" for _, n in extents))
    return [packed, pivots]


def _matrices(f: LLVMFunction, dtype: DType) -> None:
    """Write the elimination of a range of matrices."""
    with f.loop("%to", start="%from", hint="matrix") as number:
        matrix = element_at(f, "%a", times(f, number, "%rows", "%columns"), dtype)
        numbers = f.offset("%pivots", times(f, number, "%k"), "i32")
        with f.loop("%k", hint="column") as k:
            found = _largest(f, dtype, matrix, k)
            f.store("i32", f.value(f"trunc i64 {plus(f, found, 1)} to i32"), f.offset(numbers, k, "i32"))
            _exchange(f, dtype, matrix, k, found)
            _subtract(f, dtype, matrix, k)


def _place(f: LLVMFunction, dtype: DType, matrix: str, row: str, column: str) -> str:
    return element_at(f, matrix, plus(f, times(f, row, "%columns"), column), dtype)


def _largest(f: LLVMFunction, dtype: DType, matrix: str, k: str) -> str:
    """Return the row of the first largest magnitude from the diagonal on; a NaN is above all numbers."""
    kind = element_kind(dtype)
    best, at = f.slot(kind), f.slot("i64")
    f.store(kind, "-1.0", best)
    f.store("i64", k, at)
    with f.loop("%rows", start=k, hint="search") as row:
        x = load_element(f, dtype, _place(f, dtype, matrix, row, k))
        x = f.call(kind, f"@llvm.fabs.f{dtype.bits}", f"{kind} {x}")
        top = f.load(kind, best)
        known = f.value(f"fcmp ord {kind} {top}, {top}")
        more = all_of(f, known, negation(f, f.value(f"fcmp ole {kind} {x}, {top}")))
        with f.when(more, "more"):
            f.store(kind, x, best)
            f.store("i64", row, at)
    return f.load("i64", at)


def _exchange(f: LLVMFunction, dtype: DType, matrix: str, k: str, found: str) -> None:
    with f.when(compare(f, "ne", k, found), "exchange"), f.loop("%columns", hint="element") as column:
        places = [_place(f, dtype, matrix, row, column) for row in (k, found)]
        x, y = (load_element(f, dtype, place) for place in places)
        store_element(f, dtype, y, places[0])
        store_element(f, dtype, x, places[1])


def _subtract(f: LLVMFunction, dtype: DType, matrix: str, k: str) -> None:
    """Write that the rows below lose their multiples of row k; the multiples stay where zeros would be."""
    kind, after = element_kind(dtype), plus(f, k, 1)
    pivot = load_element(f, dtype, _place(f, dtype, matrix, k, k))
    zero = f.value(f"fcmp oeq {kind} {pivot}, 0.0")
    divisor = f.value(f"select i1 {zero}, {kind} 1.0, {kind} {pivot}")
    with f.loop("%rows", start=after, hint="below") as row:
        left = _place(f, dtype, matrix, row, k)
        factor = f.value(f"fdiv {kind} {load_element(f, dtype, left)}, {divisor}")
        store_element(f, dtype, factor, left)
        with f.loop("%columns", start=after, hint="element") as column:
            above = load_element(f, dtype, _place(f, dtype, matrix, k, column))
            here = _place(f, dtype, matrix, row, column)
            less = f.value(f"fmul {kind} {factor}, {above}")
            store_element(f, dtype, f.value(f"fsub {kind} {load_element(f, dtype, here)}, {less}"), here)
