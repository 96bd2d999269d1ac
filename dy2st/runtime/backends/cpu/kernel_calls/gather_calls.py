"""What a loop nest is told of tensors that it gathers from (gather_fusion.py), and whether all places are inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dy2st.dtypes import int64
from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.fusion.gather_fusion import FusedGather, TableStrides, pick_in_nest
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, in_register
from dy2st.runtime.backends.cpu.loop_nests.gather_loads import all_inside, are_inside
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout
from dy2st.runtime.backends.cpu.ops.tensors import extents, product
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


def picks_of(group: FusedGroup) -> dict[Value, FusedGather]:
    """Return what a group's members read at places."""
    return {o.results[0]: pick_in_nest(o) for o in group.members if o.op.is_gather}


def reads_with_gaps(made: NestLayout, value: Value) -> bool:
    """Return whether a nest that reads a tensor at places alone may do so where its rows are not dense: along one
    axis.
    """
    group = made.group
    for result, pick in picks_of(group).items():
        if value in pick.places:
            return False  # all of them are looked at before
        to = [group.maps[result][own] for own in pick.axes if own is not None]
        if pick.table is value and sum(a is not None and a >= made.outer and group.space[a] != 1 for a in to) > 1:
            return False
    return value not in group.maps


def check_places(w: FunctionEmitter, group: FusedGroup, given: Mapping[Value, Components]) -> dict[Value, TableStrides]:
    """Write that all places are inside, else the interpreter says which is not; return how the tensors stand."""
    made: dict[Value, TableStrides] = {}
    seen: set[tuple[Value, str]] = set()
    for result, pick in picks_of(group).items():
        made[result] = _apart(w, pick, given[pick.table])
        for value, extent in zip(pick.places, made[result].extents, strict=True):
            if (value, extent) not in seen:
                w.demand(_are_inside(w, value, given[value], extent))
                seen.add((value, extent))
    return made


def _apart(w: FunctionEmitter, pick: FusedGather, components: Components) -> TableStrides:
    shape = extents(pick.table, components)
    named = shape[pick.first : pick.first + len(pick.places)]
    if isinstance(components, StridedTensor):
        return TableStrides(components.strides, tuple(named))
    return TableStrides(tuple(product(w, shape[i + 1 :]) for i in range(len(shape))), tuple(named))


def _are_inside(w: FunctionEmitter, value: Value, components: Components, extent: str) -> str:
    t = tensor_type(value)
    if in_register(t):
        return are_inside(VectorType(w.f, w.unit.module, 1), components[0], t.dtype, extent)
    name = all_inside(w.unit.kernels, t.dtype, w.unit.target.lanes(int64.itemsize))
    count = product(w, extents(value, components))
    return w.f.call("i1", f"@{name}", f"ptr {components[1]}", f"i64 {count}", f"i64 {extent}")


def extents_of_tables(group: FusedGroup, given: Mapping[Value, Components]) -> Iterator[tuple[int, str]]:
    """Yield axes of the space with the extents that tensors have there which are read at places."""
    for result, pick in picks_of(group).items():
        for own, extent in zip(pick.axes, extents(pick.table, given[pick.table]), strict=True):
            axis = None if own is None else group.maps[result][own]
            if axis is not None:
                yield axis, extent
