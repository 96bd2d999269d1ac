"""Runs a group from the function of a Program: checks extents, makes room for results, calls the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.core.constant import Full
from dy2st.ops.reduce.reduction import Top
from dy2st.ops.shape.random import RandomInt
from dy2st.ops.shape.shape import Broadcast
from dy2st.records import record
from dy2st.runtime.backends.cpu.emitter.buffer_donation import room_in_place
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup
from dy2st.runtime.backends.cpu.kernel_calls.gather_calls import (
    check_places,
    extents_of_tables,
    picks_of,
    reads_with_gaps,
)
from dy2st.runtime.backends.cpu.kernel_calls.transpose_copies import is_turned, turned_copy
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    StridedTensor,
    element_kind,
    in_register,
    is_small,
    kinds,
)
from dy2st.runtime.backends.cpu.loop_nests.entry_points import kernel
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import LONGEST_COLUMNS, MOST_COLUMN_BLOCKS
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, layout
from dy2st.runtime.backends.cpu.loop_nests.scratch import column_rooms, needs_rooms, room_length
from dy2st.runtime.backends.cpu.ops.indexing.concat import positions_in_concat
from dy2st.runtime.backends.cpu.ops.tensors import (
    allocate,
    allocate_unless_reused,
    checked_product,
    product,
    thread_count,
)
from dy2st.runtime.backends.cpu.vector_ops.load_store import load_element
from dy2st.runtime.backends.cpu.vector_ops.random import numbers_of, probabilities


@record
class KernelCall:
    """A nest that is ready to run: its plan, what its kernel takes, and what is to be let go of behind it."""

    made: NestLayout
    arguments: list[str]
    rooms: dict[Value, Components]
    """Where the results stand."""
    after: list[str]
    """Blocks."""


def run_group(
    w: FunctionEmitter, group: FusedGroup, operands: list[Components], into: Mapping[Value, StridedTensor] | None = None
) -> Sequence[Components]:
    """Write the run of a group; results that `into` names are written to the memory that it has for them."""
    if not into and [o.op.name for o in group.members] == ["detach"]:
        turned = turned_copy(w, group.operands[0], operands[0])
        if turned is not None:
            return [turned]
    run = prepared(w, group, operands, into)
    call_kernel(w, run)
    return results(w, run)


def call_kernel(w: FunctionEmitter, run: KernelCall) -> None:
    """Write a call of the kernel of a group."""
    w.f.call("void", f"@{kernel(w.unit.kernels, w.unit.target, run.made)}", *run.arguments)


def prepared(
    w: FunctionEmitter, group: FusedGroup, operands: list[Components], into: Mapping[Value, StridedTensor] | None = None
) -> KernelCall:
    """Write the checks of a group's extents and the rooms for its results."""
    into = into or {}
    given = {v: w.on_stack(c) for v, c in zip(group.operands, operands, strict=True)}
    apart = [*into, *(v for v in group.results if v in w.joins), *(c for c in operands if isinstance(c, StridedTensor))]
    if group.outer is None and apart:
        group.outer = len(group.space) - 1  # a row along one axis can be read and written with gaps
    made = layout(group)
    after: list[str] = []
    whole = [v for v in group.operands if not isinstance(given[v], StridedTensor) and not is_small(v.type)]
    for value, components in list(given.items()):
        if isinstance(components, StridedTensor):
            given[value] = _read_as_it_is(w, made, value, components, after)
    extents = _extents(w, group, given)
    _check_bounds(w, group, given)
    made.tables.update(check_places(w, group, given))
    if any(o.op.monoid in ("max", "min") and not isinstance(o.op, Top) for o in group.members):
        w.demand(w.f.value(f"icmp ne i64 {product(w, extents)}, 0"))
    into = {**into, **positions_in_concat(w, group, extents)}
    made.strides.update((v, room.strides) for v, room in into.items())
    rooms = {v: into.get(v) or _room(w, made, v, extents, given, whole, after) for v in group.results}
    threads, scratch = _scratch(w, made, extents)
    blocks = _column_rooms(w, made, extents)
    arguments = [
        *(f"{kinds(v.type)[0]} {given[v][0]}" if in_register(v.type) else f"ptr {given[v][1]}" for v in made.read),
        *(f"ptr {rooms[v][1]}" for v in group.results),
        *(f"ptr {room[1]}" for room in scratch),
        *(f"i64 {e}" for e in (extents if made.outer else [product(w, extents)])),
        *(f"i64 {s}" for strides in made.strides.values() for s in strides if not s.isdigit()),
        *(f"i64 {n}" for apart in made.tables.values() for n in apart.numbers if not n.isdigit()),
        *(f"i64 {n}" for n in threads),
        *(f"ptr {room[1]}" for room in blocks),
    ]  # fmt: skip
    return KernelCall(made, arguments, rooms, [*after, *(room[0] for room in (*scratch, *blocks))])


def results(w: FunctionEmitter, run: KernelCall) -> list[Components]:
    """Write what follows the kernel of a group; return its results."""
    for block in run.after:
        w.f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return [_result(w, v, run.rooms[v]) for v in run.made.group.results]


def _scratch(w: FunctionEmitter, made: NestLayout, extents: list[str]) -> tuple[list[str], list[Components]]:
    """Return memory for rows that are kept; and for how many threads it is, where each needs its own."""
    row = extents[made.outer :]
    if not needs_rooms(made, w.unit.target):
        return [], [allocate(w, tensor_type(v).dtype, row) for v in made.kept]
    threads = thread_count(w)
    apart = room_length(w.f, product(w, row))
    return [threads], [allocate(w, tensor_type(v).dtype, [threads, apart]) for v in made.kept]


def _column_rooms(w: FunctionEmitter, made: NestLayout, extents: list[str]) -> list[Components]:
    """Return memory for what reductions over rows are by blocks of rows."""
    found = column_rooms(made, w.unit.target)
    if not found:
        return []
    length = least(w.f, product(w, extents[made.outer :]), LONGEST_COLUMNS)
    return [allocate(w, tensor_type(v).dtype, [str(MOST_COLUMN_BLOCKS), length]) for v in found]


def _read_as_it_is(
    w: FunctionEmitter, made: NestLayout, value: Value, components: StridedTensor, after: list[str]
) -> Components:
    """Let the kernel read a tensor with gaps where its rows lie along one axis; else copy it first."""
    group = made.group
    along = [a for a in group.maps.get(value, ()) if a is not None and a >= made.outer and group.space[a] != 1]
    beside = len(along) <= 1 and not is_turned(components)
    is_place = any(value in pick.places for pick in picks_of(group).values())
    if value in group.maps and (beside or made.is_row(value)) and not is_place:
        made.strides[value] = components.strides
        return components
    if reads_with_gaps(made, value):
        return components
    copied = w.copied(value, components)
    after.append(copied[0])
    return copied


def _extents(w: FunctionEmitter, group: FusedGroup, given: dict[Value, Components]) -> list[str]:
    """Return the extents of the space, and write checks that all operands have them."""
    found: dict[int, str] = {i: str(e) for i, e in enumerate(group.space) if isinstance(e, int)}
    checks: list[tuple[str, str]] = []
    given_by_numbers = False
    for value, components in given.items():
        if value not in group.maps or in_register(value.type):
            continue
        for axis, extent in zip(group.maps[value], components[2:], strict=True):
            if axis is None:
                checks.append((extent, "1"))
            elif axis in found:
                checks.append((extent, found[axis]))
            else:
                found[axis] = extent
    for axis, extent in extents_of_tables(group, given):
        if found.setdefault(axis, extent) != extent:
            checks.append((extent, found[axis]))
    for operation in group.members:
        template, dims = told_shape(operation)
        for axis, part in zip(group.maps[operation.results[0]], template, strict=bool(template)):
            extent = given[next(dims)][0] if part is None else str(part)
            if axis is None:
                continue
            if axis not in found:
                found[axis] = extent
                given_by_numbers = True
                w.demand(w.f.value(f"icmp ult i64 {extent}, {2**40}"))
            elif found[axis] != extent:
                checks.append((extent, found[axis]))
    wanted = [(a, b) for a, b in dict.fromkeys(checks) if a != b]
    if wanted:
        fine = "true"
        for a, b in wanted:
            fine = w.f.value(f"and i1 {fine}, {w.f.value(f'icmp eq i64 {a}, {b}')}")
        w.demand(fine)
    made = [found[i] for i in range(len(group.space))]
    if given_by_numbers and len(made) > 1:  # no memory says that there are so many elements
        w.demand(checked_product(w, [*made, "16"])[1])
    return made


def told_shape(operation: Operation) -> tuple[Sequence[int | None], Iterator[Value]]:
    """Return the shape that an operation is told, and the numbers that are its other extents; or nothing."""
    if isinstance(operation.op, (Broadcast, Full)):
        return operation.attributes["shape"], iter(operation.operands[1:])
    if operation.op.random_elementwise and not probabilities(operation):
        return operation.attributes["shape"], iter(operation.operands[len(numbers_of(operation)) :])
    return (), iter(())


def _check_bounds(w: FunctionEmitter, group: FusedGroup, given: dict[Value, Components]) -> None:
    """Write that the bounds of random integers hold some: else `eval` says so."""
    for operation in group.members:
        if isinstance(operation.op, RandomInt):
            low, high = (given[v][0] for v in operation.operands[2:4])
            w.demand(all_of(w.f, compare(w.f, "slt", low, high), compare(w.f, "sgt", minus(w.f, high, low), 0)))


def _room(
    w: FunctionEmitter, made: NestLayout, value: Value, extents: list[str], given: dict[Value, Components],
    whole: list[Value],
    after: list[str],
) -> Components:  # fmt: skip
    """Return where a result is to stand: on the stack, in the memory of an operand that ends here, or in new memory.

    Of the operands only those in `whole` came without gaps: a copy of another is released when the kernel has run, as
    are the blocks that `after` collects.
    """
    t, f = tensor_type(value), w.f
    if in_register(t):
        return ("", f.slot("i8" if t.dtype.is_bool else element_kind(t.dtype)))
    if is_small(t):
        return w.stack_room(t)
    before, _ = w.overwritten.get(value, (None, 0))
    if before is not None and _ends_as(made, value, before):
        return room_in_place(w, value, given[before])
    shape = ["1" if axis is None else extents[axis] for axis in made.group.maps[value]]
    old = next((v for v in whole if _ends_as(made, value, v) and w.takes_to_write(v)), None)
    if old is None:
        return allocate(w, t.dtype, shape)
    place, block = allocate_unless_reused(w, t.dtype, shape, given[old])
    after.append(block)
    return place


def _ends_as(made: NestLayout, value: Value, operand: Value) -> bool:
    """Return whether a result may stand where an operand stands: same places, each read no later than written."""
    group = made.group
    if operand not in group.maps or operand in made.strides or in_register(operand.type) or value in group.columns:
        return False
    if any(pick.table is operand for pick in picks_of(group).values()):
        return False  # any of its elements may be read at any time
    same = tensor_type(operand).dtype is tensor_type(value).dtype and group.maps[operand] == group.maps[value]
    return same and (made.is_row(value) or made.reads.get(operand, made.sweeps) <= made.at[value])


def _result(w: FunctionEmitter, value: Value, room: Components) -> Components:
    t = tensor_type(value)
    return (load_element(w.f, t.dtype, room[1]),) if in_register(t) else room
