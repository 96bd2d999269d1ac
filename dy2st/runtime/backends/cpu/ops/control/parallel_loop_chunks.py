"""Parts of a loop that threads share: which rows of its operands each has, and where its rows of the results go.

    void @dy2st.rows.<n>.part(ptr %row, i64 %from, i64 %to, i64 %who)

`row` has the operands and results of the loop, the matrices that are packed, the contexts of the parts, room for the
lists and for the sums that they make, how many rows there are, how many a part has, and where a part says that it did
not end well: then no other one begins.
"""

from __future__ import annotations

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ListType, ScalarType, TensorType
from dy2st.records import record
from dy2st.runtime.backends.cpu.allocator.list_functions import list_function
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import CALLER, CONTEXT_BYTES, ELSEWHERE, MOST_PARTS, OK
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, negation, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers, kinds, owners
from dy2st.runtime.backends.cpu.loop_parallel.chunked_lists import cut_list
from dy2st.runtime.backends.cpu.ops.control.parallel_reductions import begin_sums, keep_sums, places_of
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE


@record(frozen=True)
class ParallelLoop:
    """A loop that is written for some of its rows."""

    operation: Operation
    axes: dict[Value, int]
    """Which axis of a value its rows are; a number that is how many there are has 0."""
    name: str
    factors: list[tuple[Value, bool]]
    """The matrices that are packed before."""

    @property
    def carried(self) -> list[Value]:
        """What the loop begins with."""
        return self.operation.operands[1 : self.operation.attributes["carried"] + 1]

    @property
    def owned(self) -> list[Value]:
        """What the loop takes over: what it carries, unless it is copied or stays beside."""
        stays = self.operation.operands[len(self.carried) + 1 :]
        return [v for v in dict.fromkeys(self.carried) if v not in stays and not self.axes.get(v)]

    @property
    def sums(self) -> list[int]:
        """Which of the carried values are sums over rows: tensors that have no rows."""
        return [
            place for place, v in enumerate(self.operation.results)
            if isinstance(v.type, TensorType) and not in_registers(v.type) and v not in self.axes
        ]  # fmt: skip

    @property
    def lists(self) -> list[Value]:
        """The results that are lists."""
        return [v for v in self.operation.results if isinstance(v.type, ListType)]


def part_function(w: FunctionEmitter, loop: ParallelLoop) -> str:
    """Write the function that runs some of the parts; return its name."""
    name = f"{loop.name}.part"
    f = LLVMFunction(name, [("ptr", "%row"), *RANGE], linkage="internal", also="nounwind")
    given, made, packed, of_parts, lists, failed = (f.load("ptr", f.offset("%row", 8 * i)) for i in range(6))
    rows, size = (f.load("i64", f.offset("%row", 8 * i)) for i in (6, 7))
    sums = f.load("ptr", f.offset("%row", 64))
    operands, results = loop.operation.operands, loop.operation.results
    width = sum(len(kinds(v.type)) for v in operands)
    mine, own = f.slot("i64", width), f.slot("i64", max(1, sum(len(kinds(v.type)) for v in results)))
    caller = f.value(f"zext i1 {compare(f, 'eq', '%who', 0)} to i64")
    with f.loop("%to", start="%from", hint="part") as number:
        given_up = f.value(f"load atomic i64, ptr {failed} monotonic, align 8")
        with f.when(compare(f, "eq", given_up, 0), "go"):
            context = f.offset(of_parts, times(f, number, CONTEXT_BYTES))
            f.store("i64", caller, f.offset(context, CALLER))
            first = times(f, number, size)
            there = least(f, f.value(f"sub i64 {rows}, {first}"), size)
            f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {mine}", f"ptr {given}", f"i64 {8 * width}", "i1 false")
            _cut_operands(f, loop, mine, first, there)
            begin_sums(f, loop.operation, loop.sums, (sums, mine), number)
            status = f.slot("i32")
            f.store("i32", str(ELSEWHERE), status)
            with f.when(_cut_lists(w, f, loop, (context, given, mine), (rows, first, there)), "cut"):
                arguments = (f"ptr {context}", f"ptr {mine}", f"ptr {own}", f"i64 {rows}", f"ptr {packed}")
                f.store("i32", f.call("i32", f"@{loop.name}", *arguments), status)
            wrong = f.value(f"icmp ne i32 {f.load('i32', status)}, {OK}")
            with f.when(wrong, "wrong"):
                f.do(f"store atomic i64 1, ptr {failed} monotonic, align 8")
            with f.when(negation(f, wrong), "right"):
                _release_lists(w, f, loop, context, mine)
                _join_results(f, loop, (made, own, context, failed), (rows, first, there, number))
                _keep_lists(f, loop, own, lists, number)
                keep_sums(f, loop.operation, loop.sums, (sums, mine, own, context, failed), number)
    f.ret()
    return w.unit.module.add(name, f.text())


def _cut_operands(f: LLVMFunction, loop: ParallelLoop, mine: str, first: str, there: str) -> None:
    """Write the operands of a part: those of the loop, held by nobody, and of tensors in rows the part's own."""
    at = 0
    for value in loop.operation.operands:
        for owner in owners(value.type):
            f.store("ptr", "null", f.offset(mine, 8 * (at + owner.at)))
        axis = loop.axes.get(value)
        if isinstance(value.type, ScalarType) and axis is not None:
            f.store("i64", there, f.offset(mine, 8 * at))
        elif axis is not None and isinstance(value.type, TensorType):
            t, data = tensor_type(value), f.offset(mine, 8 * (at + 1))
            shape = [f.load("i64", f.offset(mine, 8 * (at + 2 + i))) for i in range(t.rank)]
            before = times(f, first, *shape[axis + 1 :], t.dtype.itemsize)
            f.store("ptr", f.offset(f.load("ptr", data), before), data)
            f.store("i64", there, f.offset(mine, 8 * (at + 2 + axis)))
        at += len(kinds(value.type))


def _cut_lists(w: FunctionEmitter, f: LLVMFunction, loop: ParallelLoop, places: tuple[str, str, str],
               numbers: tuple[str, str, str]) -> str:  # fmt: skip
    """Write lists of a part's own for those among the operands; return whether there are all of them."""
    (context, given, mine), found = places, list[str]()
    for value, at in places_of(loop.operation.operands):
        if isinstance(value.type, ListType):
            cut = cut_list(w.unit.module, value.type, value in loop.axes)
            whole = f.load("ptr", f.offset(given, at))
            extents = (f"i64 {number}" for number in numbers)
            found.append(f.call("ptr", f"@{cut}", f"ptr {context}", f"ptr {whole}", *extents))
            f.store("ptr", found[-1], f.offset(mine, at))
    return all_of(f, "true", *(f.value(f"icmp ne ptr {block}, null") for block in found))


def _release_lists(w: FunctionEmitter, f: LLVMFunction, loop: ParallelLoop, context: str, mine: str) -> None:
    """Write that a part lets go of its lists that the loop did not take over."""
    for value, at in places_of(loop.operation.operands):
        if isinstance(value.type, ListType) and value not in loop.owned:
            release = list_function(w.unit.kernels, "release", value.type)
            f.call("void", release, f"ptr {context}", f"ptr {f.load('ptr', f.offset(mine, at))}")


def _keep_lists(f: LLVMFunction, loop: ParallelLoop, own: str, lists: str, number: str) -> None:
    """Write which lists a part has made."""
    places = dict(places_of(loop.operation.results))
    for i, value in enumerate(loop.lists):
        kept = f.offset(f.offset(lists, 8 * MOST_PARTS * i), number, "ptr")
        f.store("ptr", f.load("ptr", f.offset(own, places[value])), kept)


def _join_results(f: LLVMFunction, loop: ParallelLoop, places: tuple[str, str, str, str],
                  numbers: tuple[str, str, str, str]) -> None:  # fmt: skip
    """Write a part's rows of the results into those of the loop; what all parts have alike, the first one writes."""
    (made, own, context, failed), (rows, first, there, number) = places, numbers
    at = 0
    for result in loop.operation.results:
        here, whole = f.offset(own, 8 * at), f.offset(made, 8 * at)
        at += len(kinds(result.type))
        if isinstance(result.type, ListType) or (result not in loop.axes and not in_registers(result.type)):
            continue
        if in_registers(result.type):
            with f.when(compare(f, "eq", number, 0), "first"):
                for i, kind in enumerate(kinds(result.type)):
                    f.store(kind, f.load(kind, f.offset(here, 8 * i)), f.offset(whole, 8 * i))
            continue
        t, axis = tensor_type(result), loop.axes[result]
        shape = [f.load("i64", f.offset(here, 8 * (2 + i))) for i in range(t.rank)]
        wanted = [f.load("i64", f.offset(whole, 8 * (2 + i))) for i in range(t.rank)]
        wanted[axis] = there
        fine = all_of(f, *(compare(f, "eq", a, b) for a, b in zip(shape, wanted, strict=True)))
        with f.when(negation(f, fine), "another"):
            f.do(f"store atomic i64 1, ptr {failed} monotonic, align 8")
        inner = times(f, *shape[axis + 1 :], t.dtype.itemsize)
        to = f.offset(f.load("ptr", f.offset(whole, 8)), times(f, first, inner))
        chunk, source = times(f, there, inner), f.load("ptr", f.offset(here, 8))
        with f.when(fine, "join"), f.loop(times(f, 1, *shape[:axis]), hint="chunk") as i:
            target = f.offset(to, times(f, i, rows, inner))
            f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {f.offset(source, times(f, i, chunk))}",
                   f"i64 {chunk}", "i1 false")  # fmt: skip
        f.call("void", "@dy2st.release", f"ptr {context}", f"ptr {f.load('ptr', here)}")
