"""Reads at places within loops (gather_fusion.py), and whether places are inside of an axis: vectors of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dy2st.dtypes import DType, int64
from dy2st.ir.program import tensor_type
from dy2st.runtime.backends.cpu.fusion.gather_fusion import FusedGather, TableStrides
from dy2st.runtime.backends.cpu.fusion.index_maps import AxisMap, FusedGroup
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, times
from dy2st.runtime.backends.cpu.vector_ops.elementwise import converted
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


# ---- a row ----------------------------------------------------------------------------------------------------------
def row_start(
    v: VectorType, pick: FusedGather, apart: TableStrides, map_: AxisMap, counters: Sequence[str], places: Mapping[int,
    str], pointer: str
) -> str:  # fmt: skip
    """Write where a row begins: as far as its counters, and places that are the same along it, say so."""
    known = {axis: to for axis, own in enumerate(pick.axes) if own is not None and (to := map_[own]) is not None}
    outside = {axis: counters[to] for axis, to in known.items() if to < len(counters)}
    number = _element_number(v, pick, apart, places, outside)
    size = tensor_type(pick.table).dtype.itemsize
    return pointer if number == "0" else v.f.offset(pointer, times(v.f, number, size))


def picked(
    v: VectorType, pick: FusedGather, apart: TableStrides, group: FusedGroup, map_: AxisMap, elements: ElementAccess,
    start: str, first: str,
    places: Mapping[int, str],
) -> str:  # fmt: skip
    """Write the elements of a row from number `first` on; `places` are those that vary along it."""
    outer, dtype = group.outer or 0, tensor_type(pick.table).dtype
    inside = [
        axis for axis, own in enumerate(pick.axes)
        if own is not None and (to := map_[own]) is not None and to >= outer and group.space[to] != 1
    ]  # fmt: skip
    if not places:
        return elements.load(RowPosition(start, first, dtype, apart.strides[inside[-1]] if inside else "1"))
    beside = {axis: v.line(first) for axis in inside}
    return elements.gather(RowPosition(start, "0", dtype), _element_number(v, pick, apart, places, beside))


def _element_number(
    v: VectorType, pick: FusedGather, apart: TableStrides, places: Mapping[int, str], counters: Mapping[int, str]
) -> str:
    """Write the number in the table that some of the places, by their numbers, and counters of its axes make up."""
    f, kind, total = v.f, v.of(int64), "0"
    for i, register in places.items():
        place = converted(v, register, tensor_type(pick.places[i]).dtype, int64)
        extent = v.spread(apart.extents[i], int64)
        behind = f.value(f"icmp slt {kind} {place}, {v.constant(0, int64)}")
        front = v.select(behind, f.value(f"add {kind} {place}, {extent}"), place, int64)
        total = _sum(v, total, _product(v, front, apart.strides[pick.first + i]))
    for axis, counter in counters.items():
        total = _sum(v, total, _product(v, counter, apart.strides[axis]))
    return total


def _product(v: VectorType, numbers: str, stride: str) -> str:
    return numbers if stride == "1" else v.f.value(f"mul {v.of(int64)} {numbers}, {v.spread(stride, int64)}")


def _sum(v: VectorType, total: str, more: str) -> str:
    return more if total == "0" else v.f.value(f"add {v.of(int64)} {total}, {more}")


# ---- whether they are inside ----------------------------------------------------------------------------------------
def all_inside(module: LLVMModule, dtype: DType, lanes: int) -> str:
    """Return the name of the function `i1 (places, count, extent)`: whether all are inside of an axis."""
    name = f"dy2st.inside.{dtype.name}"
    if name not in module:
        f = LLVMFunction(name, [("ptr", "%places"), ("i64", "%count"), ("i64", "%extent")], "i1", also="nounwind")
        inside, whole = f.slot("i1"), f.value(f"and i64 %count, {-lanes}")
        f.store("i1", "true", inside)
        for count, first, stop in dict.fromkeys(((lanes, "0", whole), (1, whole, "%count"))):
            with f.loop(stop, count, first, hint="places") as i:
                some = ElementAccess(f, module, count).load(RowPosition("%places", i, dtype))
                fine = are_inside(VectorType(f, module, count), some, dtype, "%extent")
                f.store("i1", all_of(f, f.load("i1", inside), fine), inside)
        f.ret("i1", f.load("i1", inside))
        module.add(name, f.text())
    return name


def are_inside(v: VectorType, places: str, dtype: DType, extent: str) -> str:
    """Write whether all of some places are inside of an axis, counted from its front or its end."""
    f, kind = v.f, v.of(int64)
    from_front = f.value(f"add {kind} {converted(v, places, dtype, int64)}, {v.spread(extent, int64)}")
    fine = f.value(f"icmp ult {kind} {from_front}, {v.spread(times(f, extent, 2), int64)}")
    if v.count == 1:
        return fine
    reduce = f"llvm.vector.reduce.and.v{v.count}i1"
    v.module.add(reduce, f"declare i1 @{reduce}(<{v.count} x i1>)")
    return f.call("i1", f"@{reduce}", f"<{v.count} x i1> {fine}")
