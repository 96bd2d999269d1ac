"""`adaptive_max_pool`: the largest element of each cell and its place, a map of a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import Operation, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, host_rule
from dy2st.runtime.backends.cpu.emitter.shared_routines import split_routine
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, element_kind
from dy2st.runtime.backends.cpu.ops.indexing.advanced_indexing import element_at, nest
from dy2st.runtime.backends.cpu.ops.matrix.scans import better
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents, product
from dy2st.runtime.backends.cpu.ops.views import is_memory
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element, store_element
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Made = Sequence[Components]
_COST = 2_000
"""How many picoseconds an element takes, roughly."""


@rule("adaptive_max_pool")
def largest_of_cells(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write the largest elements of cells and their places; `eval` says that there is nothing to pool."""
    (value,), f = operation.operands, w.f
    if not is_memory(value):
        return host_rule(w, operation, operands)
    dtype, shape = tensor_type(value).dtype, extents(value, operands[0])
    counts = [str(n) for n in operation.attributes["output"]]
    some = all_of(f, "true", *(compare(f, "sgt", n, 0) for n in shape[2:]))

    def fast() -> Made:
        made = [allocate(w, kind, [*shape[:2], *counts]) for kind in (dtype, int64)]
        sizes = [*((f"%{what}.{i}", n) for what, row in (("extent", shape[2:]), ("count", counts))
                   for i, n in enumerate(row)), ("%maps", product(w, shape[:2])),
                 ("%size", product(w, shape[2:])), ("%cells", product(w, counts))]  # fmt: skip
        parameters = [("ptr", "%x"), ("ptr", "%made"), ("ptr", "%places"), *(("i64", name) for name, _ in sizes)]
        name = split_routine(
            w, f"largest_of_cells.{dtype.name}.{len(counts)}", parameters,
            lambda g: ("%maps", times(g, plus(g, "%size", "%cells"), _COST)),
            lambda g: _maps(g, w.unit.kernels, dtype, len(counts)),
        )  # fmt: skip
        addresses = (operands[0][1], made[0][1], made[1][1])
        f.call("void", name, *(f"ptr {a}" for a in addresses), *(f"i64 {n}" for _, n in sizes))
        return made

    return w.guarded(operation, operands, some, fast)


def _maps(f: LLVMFunction, kernels: LLVMModule, dtype: DType, rank: int) -> None:
    """Write the cells of a range of maps."""
    kind = element_kind(dtype)
    best, at = f.slot(kind), f.slot("i64")

    def cell(counters: list[str]) -> None:
        bounds = [_bounds(f, counter, f"%extent.{i}", f"%count.{i}") for i, counter in enumerate(counters)]
        first = _number(f, [low for low, _ in bounds], "extent")
        f.store(kind, load_element(f, dtype, element_at(f, source, first, dtype)), best)
        f.store("i64", first, at)
        search(bounds, [])
        room = plus(f, times(f, number, "%cells"), _number(f, counters, "count"))
        store_element(f, dtype, f.load(kind, best), element_at(f, "%made", room, dtype))
        f.store("i64", f.load("i64", at), f.offset("%places", room, "i64"))

    def search(bounds: Sequence[tuple[str, str]], places: list[str]) -> None:
        if len(places) < rank:
            low, high = bounds[len(places)]
            with f.loop(high, start=low, hint="inside") as place:
                search(bounds, [*places, place])
            return
        place = _number(f, places, "extent")
        x = load_element(f, dtype, element_at(f, source, place, dtype))
        v, top, found = VectorType(f, kernels, 1), f.load(kind, best), f.load("i64", at)
        more = better(v, dtype, True, x, top)
        f.store(kind, v.select(more, x, top, dtype), best)
        f.store("i64", v.select(more, place, found, int64), at)

    with f.loop("%to", start="%from", hint="map") as number:
        source = element_at(f, "%x", times(f, number, "%size"), dtype)
        nest(f, [f"%count.{i}" for i in range(rank)], cell)


def _bounds(f: LLVMFunction, at: str, extent: str, count: str) -> tuple[str, str]:
    """Write where a cell begins and ends: [at * extent / count, (at + 1) * extent / count), outwards."""
    before = times(f, at, extent)
    behind = plus(f, before, extent, count, -1)
    return f.value(f"udiv i64 {before}, {count}"), f.value(f"udiv i64 {behind}, {count}")


def _number(f: LLVMFunction, places: Sequence[str], row: str) -> str:
    """Write the row-major number of a place."""
    number = "0"
    for i, place in enumerate(places):
        number = plus(f, times(f, number, f"%{row}.{i}"), place)
    return number
