"""Products of matrices of whole numbers and of booleans: a row of the result at a time, a vector of its columns.

Those of complex numbers are NumPy's loop, which calls BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, complex64
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.shared_routines import routine, split_routine, stretches
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import plus, times
from dy2st.runtime.backends.cpu.ops.numpy_ufunc_loops import UfuncLoop
from dy2st.runtime.backends.cpu.ops.tensors import allocate, product
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition, load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

_COST = 60
"""Picoseconds of a multiplication."""


def whole_product(
    w: FunctionEmitter, dtype: DType, a: tuple[str, bool], b: tuple[str, bool], made: str, batch: list[str],
    sizes: tuple[str, str, str],
) -> None:  # fmt: skip
    """Write the products of a batch of matrices without gaps.

    Parameters
    ----------
    a, b
        The address of each factor, and whether its matrices are transposed.
    made
        The address of the results.
    sizes
        The rows and columns of a result, and how many products each is the sum of.
    """
    (x, turned), (y, across), (rows, columns, inner) = a, b, sizes
    f, count = w.f, product(w, batch)
    block = None
    if across:
        copy = allocate(w, dtype, [*batch, inner, columns])
        block = copy[0]
        _turn(w, dtype, (y, copy[1]), (count, inner, columns))
        y = copy[1]
    steps = ("1", rows) if turned else (inner, "1")
    f.call("void", _rows(w, dtype), *(f"ptr {p}" for p in (x, y, made)),
           *(f"i64 {n}" for n in (count, rows, columns, inner, *steps)))  # fmt: skip
    if block is not None:
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")


def complex_product(w: FunctionEmitter, dtype: DType) -> UfuncLoop:
    """Return NumPy's loop for products of complex matrices."""
    letter = "F" if dtype is complex64 else "D"
    return UfuncLoop(w, f"numpy.matmul.{letter}{letter}->{letter}")


def run_complex_product(
    w: FunctionEmitter, loop: UfuncLoop, dtype: DType, factors: Sequence[tuple[str, bool]], made: str, count: str,
    sizes: tuple[str, str, str],
) -> None:  # fmt: skip
    """Write a run of it, on factors as `whole_product` takes them."""
    f, size, (rows, columns, inner) = w.f, dtype.itemsize, sizes
    extents = ((rows, inner), (inner, columns), (rows, columns))
    outer = [times(f, *pair, size) for pair in extents]
    steps: list[int | str] = []
    for (tall, wide), turned in zip(extents, (*(t for _, t in factors), False), strict=True):
        steps += [size, times(f, tall, size)] if turned else [times(f, wide, size), size]
    cost = times(f, rows, columns, inner, _COST)
    loop.call([*(place for place, _ in factors), made], count, [rows, inner, columns], [*outer, *steps], cost)


def _rows(w: FunctionEmitter, dtype: DType) -> str:
    """Return the function that computes rows; `a_row`, `a_step`: how far elements of the left factor are apart."""
    pointers = [("ptr", f"%{name}") for name in "abc"]
    numbers = [("i64", f"%{name}") for name in ("count", "rows", "columns", "inner", "a_row", "a_step")]
    kernels, lanes = w.unit.kernels, w.unit.target.lanes(max(4, dtype.itemsize))
    multiply, add = ("and", "or") if dtype.is_bool else ("mul", "add")

    def write(f: LLVMFunction) -> None:
        with f.loop("%to", start="%from", hint="row") as number:
            matrix, i = (f.value(f"{what} i64 {number}, %rows") for what in ("udiv", "urem"))
            a = f.offset("%a", times(f, plus(f, times(f, matrix, "%rows", "%inner"), times(f, i, "%a_row")),
                                     dtype.itemsize))  # fmt: skip
            b = f.offset("%b", times(f, matrix, "%inner", "%columns", dtype.itemsize))
            c = f.offset("%c", times(f, number, "%columns", dtype.itemsize))
            for start, stop, step in stretches(f, "%columns", lanes):
                v, elements = VectorType(f, kernels, step), ElementAccess(f, kernels, step)
                kind = v.of(dtype)
                total = f.slot(kind)
                with f.loop(stop, step, start, hint="columns") as j:
                    f.store(kind, "false" if kind == "i1" else "zeroinitializer" if step > 1 else "0", total)
                    with f.loop("%inner", hint="sum") as k:
                        x = load_element(f, dtype, f.offset(a, times(f, k, "%a_step", dtype.itemsize)))
                        y = elements.load(RowPosition(b, plus(f, times(f, k, "%columns"), j), dtype))
                        term = f.value(f"{multiply} {kind} {v.spread(x, dtype)}, {y}")
                        f.store(kind, f.value(f"{add} {kind} {f.load(kind, total)}, {term}"), total)
                    elements.store(RowPosition(c, j, dtype), f.load(kind, total))

    def units(f: LLVMFunction) -> tuple[str, str]:
        return times(f, "%count", "%rows"), times(f, "%columns", "%inner", _COST)

    return split_routine(w, f"product.{dtype.name}", [*pointers, *numbers], units, write)


def _turn(w: FunctionEmitter, dtype: DType, places: tuple[str, str], sizes: tuple[str, str, str]) -> None:
    """Write copies of matrices with rows and columns exchanged, of so many rows and columns then."""

    def write(f: LLVMFunction) -> None:
        with f.loop("%count") as number, f.loop("%rows") as i, f.loop("%columns") as j:
            before = times(f, number, "%rows", "%columns")
            source, to = plus(f, before, times(f, j, "%rows"), i), plus(f, before, times(f, i, "%columns"), j)
            element = load_element(f, dtype, f.offset("%x", times(f, source, dtype.itemsize)))
            store_element(f, dtype, element, f.offset("%y", times(f, to, dtype.itemsize)))

    numbers = [("i64", f"%{name}") for name in ("count", "rows", "columns")]
    name = routine(w, f"turned.{dtype.name}", [("ptr", "%x"), ("ptr", "%y"), *numbers], write)
    w.f.call("void", name, *(f"ptr {p}" for p in places), *(f"i64 {n}" for n in sizes))
