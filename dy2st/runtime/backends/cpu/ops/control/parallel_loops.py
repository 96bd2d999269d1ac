"""Loops whose iterations are run by several threads at once, each on rows of its own (loop_parallel/).

    i32  @dy2st.rows.<n>(ptr %context, ptr %operands, ptr %results, i64 %rows, ptr %packed)
         the loop, for all rows or for some, which are `rows` in all; matrices that it multiplies by are packed already
How many rows a part has (parallel_loop_chunks.py), extents alone decide, so the results are the same bits for any
number of threads. A part writes into no memory but its own and its rows of the results, and never calls Python: where
one would have to, or ends with other extents than it began with, the loop is run again as a whole, and where that would
call Python, the interpreter runs the Program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ListType, TensorType
from dy2st.runtime.backends.cpu.allocator.list_functions import list_function
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import CONTEXT_BYTES, INTERRUPTED, MOST_PARTS, OK, STOP
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter, NeedsPython
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, most, negation, plus, rounded_up, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, StridedTensor, kinds
from dy2st.runtime.backends.cpu.loop_parallel.chunk_contexts import contexts, emptied, joined
from dy2st.runtime.backends.cpu.loop_parallel.chunked_lists import whole_list
from dy2st.runtime.backends.cpu.loop_parallel.independent_axes import independent_axes
from dy2st.runtime.backends.cpu.ops.containers.lists import list_type
from dy2st.runtime.backends.cpu.ops.control.loop_cost import expected_iterations, join_cost, row_cost
from dy2st.runtime.backends.cpu.ops.control.parallel_loop_chunks import ParallelLoop, part_function
from dy2st.runtime.backends.cpu.ops.control.parallel_reductions import add_sums, rooms_for_sums, sums_fit
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import begun, factors_outside, packed_form
from dy2st.runtime.backends.cpu.ops.tensors import allocate, extents
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import PARALLEL

Rule = Callable[[FunctionEmitter, Operation, list[Components]], Sequence[Components]]
_TILE = 8
"""Rows of a part are a multiple of it: as many as kernels of products take together."""
_FEW, _MANY = 8, 16
"""Rows of a part at least, and where there are enough for two such parts."""
_JOINED = 4
"""Lists that would take more than this part of the time to be put together are left as they are."""
_LEAST_ITERATION = 2_000_000
"""Picoseconds that an iteration of a part takes at least."""


def parallel_loop(
    w: FunctionEmitter, operation: Operation, operands: list[Components], write: Rule
) -> Sequence[Components] | None:
    """Write a loop that threads share, whose iterations `write` writes; None for one that is not that kind of loop."""
    if w.alone or w.loops or w.unit.standalone:
        return None
    axes = independent_axes(operation)
    if axes is None:
        return None
    count = sum(name.startswith("dy2st.rows.") for name in w.unit.module.texts)
    loop = ParallelLoop(operation, axes, f"dy2st.rows.{count}", factors_outside(operation))
    try:
        _write_loop(w, loop, write)
    except NeedsPython:
        return None
    return _run(w, loop, operands)


def _write_loop(w: FunctionEmitter, loop: ParallelLoop, write: Rule) -> None:
    """Write the function that runs all iterations on some rows."""
    parameters = [("ptr", "%context"), ("ptr", "%operands"), ("ptr", "%results"), ("i64", "%rows"), ("ptr", "%packed")]
    f = LLVMFunction(loop.name, parameters, "i32", linkage="internal", also="nounwind")
    inner, at = FunctionEmitter(w.unit, f), 0
    inner.alone = True
    copies: dict[Value, Components] = {}
    given: list[Components] = []
    for place, value in enumerate(loop.operation.operands):
        components = inner.read("%operands", value.type, at)
        at += len(kinds(value.type))
        axis = loop.axes.get(value)
        if axis and isinstance(value.type, TensorType):
            components = _cut(f, value, components, axis)
            if 0 < place <= len(loop.carried):
                copies.setdefault(value, inner.copied(value, components))
        given.append(components)
    given = [copies.get(v, c) for v, c in zip(loop.operation.operands, given, strict=True)]
    for i, key in enumerate(loop.factors):
        inner.packed[key] = begun(inner, f.load("ptr", f.offset("%packed", 8 * i)))
    inner.hold(loop.owned)
    results = write(inner, loop.operation, given)
    inner.write("%results", [v.type for v in loop.operation.results], results)
    for value, components in copies.items():
        inner.release(value.type, components)
    for i, key in enumerate(loop.factors):
        own = f.value(f"icmp eq ptr {f.load('ptr', f.offset('%packed', 8 * i))}, null")
        with f.when(own, "own"):
            f.call("void", "@dy2st.release", "ptr %context", f"ptr {f.load('ptr', inner.packed[key].block)}")
    f.ret("i32", str(OK))
    inner.finish()
    w.unit.module.add(loop.name, f.text())


def _cut(f: LLVMFunction, value: Value, components: Components, axis: int) -> StridedTensor:
    """Return a tensor whose rows along an axis are some of `%rows`."""
    whole = extents(value, components)
    whole[axis] = "%rows"
    apart = ["1"]
    for extent in reversed(whole[1:]):
        apart.append(extent if apart[-1] == "1" else times(f, apart[-1], extent))
    return StridedTensor.of(components, apart[::-1])


def _run(w: FunctionEmitter, loop: ParallelLoop, operands: list[Components]) -> Sequence[Components]:
    """Write the run of a loop: as a whole on this thread, or in parts."""
    f, operation = w.f, loop.operation
    rows = _rows(w, loop, operands)
    cost = row_cost(f, operation, operands, loop.axes, w.unit.target)
    lists = times(f, join_cost(f, operation, operands, loop.axes), _JOINED)
    pays = all_of(f, compare(f, "sle", lists, cost), sums_fit(w, operation, loop.sums, operands))
    size = _part_size(f, rows, cost, pays)
    count = f.value(f"sdiv i64 {plus(f, rows, size, -1)}, {size}")
    given = f.slot("i64", sum(len(kinds(v.type)) for v in operation.operands))
    made = f.slot("i64", max(1, sum(len(kinds(v.type)) for v in operation.results)))
    packed = f.slot("ptr", max(1, len(loop.factors)))
    for value in loop.owned:
        w.owned(value, operands[operation.operands.index(value)])
    w.write(given, [v.type for v in operation.operands], operands)
    whole, parts, done = f.label("whole"), f.label("parts"), f.label("shared")
    for i in range(len(loop.factors)):
        f.store("ptr", "null", f.offset(packed, 8 * i))
    f.branch(compare(f, "sgt", count, 1), parts, whole)
    f.start(parts)
    iterations = expected_iterations(f, operation, operands)
    failed = _run_parts(w, loop, operands, (given, made, packed), (rows, size, count, times(f, cost, size, iterations)))
    f.branch(compare(f, "eq", failed, 0), done, whole)
    f.start(whole)
    rest = (f"i64 {rows}", f"ptr {packed}")
    w.check(f.call("i32", f"@{loop.name}", "ptr %context", f"ptr {given}", f"ptr {made}", *rest))
    f.start(done)
    results, at = list[Components](), 0
    for value in operation.results:
        results.append(w.read(made, value.type, at))
        at += len(kinds(value.type))
    return results


def _rows(w: FunctionEmitter, loop: ParallelLoop, operands: list[Components]) -> str:
    """Write how many rows there are, and that the interpreter takes over where the operands differ in that."""
    f, found = w.f, list[str]()
    for value, components in zip(loop.operation.operands, operands, strict=True):
        axis = loop.axes.get(value)
        if axis is not None and not isinstance(value.type, ListType):
            found.append(extents(value, components)[axis] if isinstance(value.type, TensorType) else components[0])
    rows = found[0]
    for other in dict.fromkeys(found):
        if other != rows:
            w.demand(compare(f, "eq", other, rows))
    return rows


def _part_size(f: LLVMFunction, rows: str, cost: str, pays: str) -> str:
    """Write how many rows a part has: all of them where an iteration does not take long, or parts do not pay."""
    least_rows = f.value(f"select i1 {compare(f, 'sge', rows, 2 * _MANY)}, i64 {_MANY}, i64 {_FEW}")
    total, parts = times(f, rows, cost), "1"
    number = 2
    while number <= MOST_PARTS:
        enough = all_of(f, pays, compare(f, "sge", rows, times(f, least_rows, number)),
                        compare(f, "sge", total, number * _LEAST_ITERATION))  # fmt: skip
        parts = f.value(f"select i1 {enough}, i64 {number}, i64 {parts}")
        number *= 2
    even = f.value(f"sdiv i64 {plus(f, rows, parts, -1)}, {parts}")
    return most(f, f.value(f"select i1 {compare(f, 'eq', parts, 1)}, i64 {rows}, i64 {rounded_up(f, even, _TILE)}"), 1)


def _run_parts(w: FunctionEmitter, loop: ParallelLoop, operands: list[Components], slots: tuple[str, str, str],
               numbers: tuple[str, str, str, str]) -> str:  # fmt: skip
    """Write the run of a loop in parts; return a number that is not 0 where one of them did not end well."""
    f, module, (given, made, packed), (rows, size, count, cost) = w.f, w.unit.module, slots, numbers
    of_parts = f.call("ptr", f"@{contexts(module)}", "ptr %context", f"i64 {count}")
    w.demand(f.value(f"icmp ne ptr {of_parts}, null"))
    for i, (value, swap) in enumerate(loop.factors):
        w.packed[value, swap] = begun(w, "null")
        packed_form(w, value, operands[loop.operation.operands.index(value)], swap)
        f.store("ptr", f.load("ptr", w.packed.pop((value, swap)).block), f.offset(packed, 8 * i))
    _room_for_results(w, loop, operands, made)
    sums, blocks = rooms_for_sums(w, loop.operation, loop.sums, operands, count)
    failed, row, lists = f.slot("i64"), f.slot("i64", 9), f.slot("ptr", max(1, MOST_PARTS * len(loop.lists)))
    f.store("i64", "0", failed)
    for i, place in enumerate((given, made, packed, of_parts, lists, failed)):
        f.store("ptr", place, f.offset(row, 8 * i))
    for i, number in enumerate((rows, size), 6):
        f.store("i64", number, f.offset(row, 8 * i))
    f.store("ptr", sums, f.offset(row, 64))
    part = part_function(w, loop)
    module.add(PARALLEL.name, PARALLEL.text)
    f.call("void", f"@{PARALLEL.name}", f"ptr @{part}", f"ptr {row}", f"i64 {count}", f"i64 {cost}", f"i64 {count}")
    f.call("void", f"@{joined(module)}", "ptr %context")
    stopped = compare(f, "ne", f.load("i64", f.offset("%context", STOP)), 0)
    w.check(f.value(f"select i1 {stopped}, i32 {INTERRUPTED}, i32 {OK}"))
    for i in range(len(loop.factors)):
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {f.load('ptr', f.offset(packed, 8 * i))}")
        f.store("ptr", "null", f.offset(packed, 8 * i))
    _join_lists(w, loop, (lists, made, of_parts, failed), (rows, size, count))
    ended = f.load("i64", failed)
    well = compare(f, "eq", ended, 0)
    with f.when(well, "well"):
        add_sums(w, loop.operation, loop.sums, operands, (sums, made), count)
        for value in loop.owned:
            w.release(value.type, operands[loop.operation.operands.index(value)])
    with f.when(negation(f, well), "again"):
        f.call("void", f"@{emptied(module)}", "ptr %context")
        at = 0
        for result in loop.operation.results:
            if result in loop.axes and isinstance(result.type, TensorType):
                f.call("void", "@dy2st.release", "ptr %context", f"ptr {f.load('ptr', f.offset(made, 8 * at))}")
            at += len(kinds(result.type))
    for block in blocks:
        f.call("void", "@dy2st.release", "ptr %context", f"ptr {block}")
    return ended


def _room_for_results(w: FunctionEmitter, loop: ParallelLoop, operands: list[Components], made: str) -> None:
    """Write memory for the results in rows: each is as large as what the loop begins with."""
    at = 0
    for value, result in zip(loop.carried, loop.operation.results, strict=True):
        if result in loop.axes and isinstance(result.type, TensorType):
            shape = extents(value, operands[loop.operation.operands.index(value)])
            row = w.f.offset(made, 8 * at)
            w.write(row, [value.type], [allocate(w, tensor_type(value).dtype, shape)])
        at += len(kinds(result.type))


def _join_lists(
    w: FunctionEmitter, loop: ParallelLoop, slots: tuple[str, str, str, str], numbers: tuple[str, str, str]
) -> None:
    """Write lists of whole elements, where all parts ended well; where they do not fit, the loop is run again."""
    f, (lists, made, of_parts, failed), (rows, size, count) = w.f, slots, numbers
    for i, result in enumerate(loop.lists):
        t, of_results = list_type(result.type), f.offset(lists, 8 * MOST_PARTS * i)
        at = sum(len(kinds(v.type)) for v in loop.operation.results[: loop.operation.results.index(result)])
        with f.when(compare(f, "eq", f.load("i64", failed), 0), "lists"):
            join = whole_list(w.unit.module, t, result in loop.axes)
            extents = (f"i64 {number}" for number in (count, rows, size))
            whole = f.call("ptr", f"@{join}", "ptr %context", f"ptr {of_results}", *extents)
            f.store("ptr", whole, f.offset(made, 8 * at))
            missing = f.value(f"icmp eq ptr {whole}, null")
            f.store("i64", f.value(f"zext i1 {missing} to i64"), failed)
            with f.loop(count, hint="list") as k:
                context = f.offset(of_parts, times(f, k, CONTEXT_BYTES))
                block = f.load("ptr", f.offset(of_results, k, "ptr"))
                f.call("void", list_function(w.unit.kernels, "release", t), f"ptr {context}", f"ptr {block}")
