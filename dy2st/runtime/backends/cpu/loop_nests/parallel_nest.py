"""A loop nest as a function, whole or split between threads as parallel_schedule.py says.

Where it is split, the function that Programs call only says what there is to be shared; functions beside it run ranges
of the nest.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.epilogue import OPERANDS
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.non_temporal_stores import LARGE, LEAST_VECTOR, fence, is_non_temporal
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import element_kind, in_register
from dy2st.runtime.backends.cpu.loop_nests.emit import LoopNest
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import (
    MOST_BLOCKS,
    RANGE_UNIT,
    ROW_COST,
    Way,
    blocks,
    bounds,
    column_blocks,
    element_cost,
    longest,
    units,
    way,
)
from dy2st.runtime.backends.cpu.loop_nests.partial_sums import add_up
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, SweepWork
from dy2st.runtime.backends.cpu.loop_nests.scratch import needs_rooms, room_length
from dy2st.runtime.backends.cpu.thread_pool.memory_layout import MOST
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import PARALLEL, RANGE, by_row, forked
from dy2st.runtime.backends.cpu.vector_ops.load_store import RowPosition
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined, finished
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType


class ParallelNest(LoopNest):
    """Writes a nest in one of the forms that entry_points.py names."""

    def __init__(self, module: LLVMModule, target: Target, made: NestLayout):
        self.way: Way = "whole"
        super().__init__(module, target, made)
        self.cost = element_cost(made, self.count)
        self.way = way(made, self.cost)
        if needs_rooms(made, target):
            self.parameters.append(("i64", "%threads"))
        self.rooms = [f"%b{i}" for i in range(len(made.group.columns))] if self.way == "rows" else []
        """Memory for the sums of blocks of rows."""
        self.parameters += [("ptr", room) for room in self.rooms]
        self.begin(LLVMFunction("dy2st.kernel", self.parameters, also="nounwind"))
        self.rows = ("0", "0")
        """The range of rows that is being written."""
        self.beside: list[str] = []
        """The texts of the functions that run ranges."""

    def text(self) -> str:
        """Write the function, and behind it those that run ranges."""
        main = self.f
        if self.way == "sweeps":
            self.row_of([])
        elif self.way == "rows":
            self._split_rows()
        else:
            self.write()
        main.ret()
        return "\n\n".join((main.text(), *self.beside))

    def ranges(self) -> str:
        """Write the function that runs units of one sweep, which reads what it takes from memory."""
        part = self._part([])
        self.way = "rows"  # the sweep is not split again
        self.first, self.stop = bounds(part, self.length, RANGE_UNIT, "%from", "%to")
        self.row_of([])
        self._end_stores(part)
        part.ret()
        public = by_row("dy2st.kernel", part.name, [kind for kind, _ in self.parameters], linkage="")
        return f"{public.text}\n\n{part.text()}"

    def parts(self) -> str:
        """Write the function that runs some rows and columns, which reads what it takes from a row of memory."""
        numbers = [("i64", f"%{name}") for name in ("upper", "lower", "left", "right")]
        public = LLVMFunction("dy2st.kernel", [("ptr", "%row"), *numbers], also="nounwind")
        given = [
            f"{kind} {public.load(kind, public.offset('%row', OPERANDS + 8 * i))}"
            for i, (kind, _) in enumerate(self.parameters)
        ]
        part = LLVMFunction("dy2st.kernel.0", [*self.parameters, *numbers], linkage="internal", also="nounwind")
        public.call("void", f"@{part.name}", *given, *(f"{kind} {register}" for kind, register in numbers))
        public.ret()
        self.way = "whole"
        self.begin(part)
        self.first, self.stop = "%left", "%right"
        with part.loop("%lower", start="%upper", hint="row") as number:
            self.row_of(self._counters(number))
        part.ret()
        return f"{public.text()}\n\n{part.text()}"

    def _counters(self, number: str) -> list[str]:
        """Write the places along the outer axes of a row of which this is the number."""
        counters: list[str] = []
        for axis in range(self.made.outer - 1, 0, -1):
            counters.insert(0, self.f.value(f"urem i64 {number}, {self.extent(axis)}"))
            number = self.f.value(f"udiv i64 {number}, {self.extent(axis)}")
        return [number, *counters]

    def sums(self) -> str:
        """Write the function that runs blocks of a sweep that adds up, which reads what it takes from memory."""
        slots = self._block_rooms()
        part = self._part([*slots, ("i64", "%size")])
        self.way = "blocks"
        self.row_of([])
        self._end_stores(part)
        part.ret()
        kinds = [kind for kind, _ in (*self.parameters, *slots)]
        public = by_row("dy2st.kernel", part.name, [*kinds, "i64"], linkage="")
        return f"{public.text}\n\n{part.text()}"

    def totals(self) -> str:
        """Write the function that adds up what blocks have, in their order."""
        slots = self._block_rooms()
        self.begin(LLVMFunction("dy2st.kernel", [*self.parameters, *slots, ("i64", "%count")], also="nounwind"))
        for o, (_, slot) in zip(self.made.work(0).ends, slots, strict=True):
            value = o.results[0]
            total = finished(self.f, o, self._added_up(o, slot, "%count"), self.length)
            self.one().store(RowPosition(self.writing[value], "0", _dtype(value)), total)
        self.f.ret()
        return self.f.text()

    def _block_rooms(self) -> list[tuple[str, str]]:
        return [("ptr", f"%u{i}") for i in range(len(self.made.work(0).ends))]

    def _part(self, more: list[tuple[str, str]]) -> LLVMFunction:
        """Begin a function that runs a range; as one of its own it is not compiled for one thread and for several."""
        f = LLVMFunction(
            f"dy2st.kernel.{len(self.beside)}",
            [*self.parameters, *more, *RANGE],
            linkage="internal",
            also="noinline nounwind",
        )
        self.begin(f)
        return f

    def _share(
        self, main: LLVMFunction, part: LLVMFunction, more: list[tuple[str, str]], count: str, cost: str
    ) -> None:
        """End the function that runs a range, and go on in the main one with sharing its units."""
        self._end_stores(part)
        part.ret()
        self.beside.append(part.text())
        self.begin(main)
        most = "%threads" if ("i64", "%threads") in self.parameters else MOST
        given = forked(main, part.name, [*self.parameters, *more], count, cost, most)
        self.beside.append(given.text)
        self.module.add(PARALLEL.name, PARALLEL.text)

    # ---- large results ---------------------------------------------------------------------------------------------
    def past_caches(self, work: SweepWork) -> dict[Value, str]:
        """Write which results go past the caches: their rows begin at whole vectors, and are not read here."""
        read = [self.base[v] for v in self.reading if v in self.base]
        found: dict[Value, str] = {}
        for value in filter(self._may_pass, work.stores):
            first = self.f.offset(self.base[value], self.first, element_kind(_dtype(value)))
            found[value] = is_non_temporal(self.f, self._is_large(value), first, self.vector_bytes, read)
        return found

    def _may_pass(self, value: Value) -> bool:
        """Return whether the vectors of a result may be written past the caches."""
        wide = self.count * _dtype(value).itemsize == self.vector_bytes >= LEAST_VECTOR
        return self.way != "whole" and wide and value in self.writing and self.place(value, "0").stride == "1"

    def _is_large(self, value: Value) -> str:
        return compare(self.f, "sge", self.product([*self.extents, str(_dtype(value).itemsize)]), LARGE)

    def _end_stores(self, part: LLVMFunction) -> None:
        """Write that what a range has written past the caches is there before the threads meet."""
        element_wise = (v for v in self.group.results if v not in self.group.columns and not self.made.is_row(v))
        for value in filter(self._may_pass, element_wise):
            fence(part, self._is_large(value))

    # ---- rows ------------------------------------------------------------------------------------------------------
    def _split_rows(self) -> None:
        main = self.f
        extents = [self.extent(axis) for axis in range(self.made.outer)]
        axis, count = longest(main, extents)
        rest = self.length
        for other, extent in enumerate(extents):
            split = main.value(f"icmp eq i64 {axis}, {other}")
            rest = times(main, rest, main.value(f"select i1 {split}, i64 1, i64 {extent}"))
        cost = plus(main, times(main, rest, self.cost), ROW_COST)
        if self.group.columns:
            self._split_columns(axis, count, cost)
            return
        part = self._part([("i64", "%axis")])
        self._take_room(part)
        self.rows = "%from", "%to"
        self.write()
        self._share(main, part, [("i64", axis)], count, cost)

    def _take_room(self, part: LLVMFunction) -> None:
        """Write where the scratch memory of a thread stands."""
        if not self.scratch:
            return
        apart = room_length(part, self.length)
        for value, register in self.scratch.items():
            size = tensor_type(value).dtype.itemsize
            self.scratch[value] = part.offset(register, times(part, "%who", apart, size))

    def outer_bounds(self, axis: int) -> tuple[str, str]:
        """Return where the loop over an axis outside of rows begins and ends."""
        start, stop = super().outer_bounds(axis)
        if self.way != "rows":
            return start, stop
        f, (first, last) = self.f, self.rows
        split = f.value(f"icmp eq i64 %axis, {axis}")
        end = f.value(f"select i1 {split}, i64 {last}, i64 {stop}")
        return f.value(f"select i1 {split}, i64 {first}, i64 0"), least(f, end, stop)

    def _split_columns(self, axis: str, count: str, cost: str) -> None:
        """Let each block of rows have sums of its own, then add them up; a small nest is one block."""
        main, columns = self.f, list(self.group.columns)
        several, number, size = column_blocks(main, count, cost, self.length)
        given = [("i64", axis), ("i64", size)]
        for value, room in zip(columns, self.rooms, strict=True):
            step = times(main, self.length, _dtype(value).itemsize)
            given.append(("ptr", main.value(f"select i1 {several}, ptr {room}, ptr {self.writing[value]}")))
            given.append(("i64", main.value(f"select i1 {several}, i64 {step}, i64 0")))
        places = [(f"%p{i}", f"%g{i}") for i in range(len(columns))]
        parameters = [p for place, step in places for p in (("ptr", place), ("i64", step))]
        part = self._part([("i64", "%axis"), ("i64", "%size"), *parameters])
        self._take_room(part)
        results = dict(self.writing)
        with part.loop("%to", start="%from", hint="block") as block:
            first = times(part, block, "%size")
            self.rows = first, plus(part, first, "%size")
            for value, (place, step) in zip(columns, places, strict=True):
                self.writing[value] = part.offset(place, times(part, block, step))
            self.write_sums()
        self._share(main, part, given, number, times(main, size, cost))
        self.writing = results
        with main.when(several, "add"):
            for value, room in zip(columns, self.rooms, strict=True):
                function = add_up(self.module, self.makers[value].op.monoid, _dtype(value), self.count)
                operands = (f"ptr {self.writing[value]}", f"ptr {room}", f"i64 {number}", f"i64 {self.length}")
                main.call("void", f"@{function}", *operands)
        self.finish_columns()

    # ---- sweeps through one row ------------------------------------------------------------------------------------
    def sweep(self, sweep: int) -> None:
        """Write one run through the row."""
        work = self.made.work(sweep)
        if self.way == "blocks":
            self._run_blocks(self.f, work, self._block_rooms())
            return
        if self.way != "sweeps" or not work:
            super().sweep(sweep)
            return
        main, row = self.f, self.row
        known = [(v, register) for v, register in row.items() if v in self.makers]
        passed = [(_kind(v), f"%q{i}") for i, (v, _) in enumerate(known)]
        given = [(_kind(v), register) for v, register in known]
        totals = [("ptr", main.slot(_kind(o.results[0]), MOST_BLOCKS)) for o in work.ends]
        slots = [("ptr", f"%u{i}") for i in range(len(totals))]
        count, size = (
            blocks(main, self.length) if work.ends else (units(main, self.length, RANGE_UNIT), str(RANGE_UNIT))
        )
        part = self._part([*passed, *slots, ("i64", "%size")])
        self.row = {v: r for v, r in row.items() if v not in self.makers and in_register(v.type)}
        self.row.update({v: register for (v, _), (_, register) in zip(known, passed, strict=True)})
        if work.ends:
            self._run_blocks(part, work, slots)
        else:
            self.first, self.stop = bounds(part, self.length, RANGE_UNIT, "%from", "%to")
            self.run_through(work)
        self._share(main, part, [*given, *totals, ("i64", size)], count, times(main, size, self.cost))
        self.row = row
        for o, (_, slot) in zip(work.ends, totals, strict=True):
            self.row[o.results[0]] = finished(main, o, self._added_up(o, slot, count), self.length)

    def _run_blocks(self, part: LLVMFunction, work: SweepWork, slots: Sequence[tuple[str, str]]) -> None:
        """Write a run through blocks of the row, each of which leaves its sums in the rooms for that."""
        with part.loop("%to", start="%from", hint="block") as number:
            self.first, self.stop = bounds(part, self.length, "%size", number, plus(part, number, 1))
            sums = self.run_through(work)
            for o, (_, slot) in zip(work.ends, slots, strict=True):
                kind = _kind(o.results[0])
                part.store(kind, sums[o.results[0]].partial(), part.offset(slot, number, kind))

    def _added_up(self, operation: Operation, slot: str, count: str) -> str:
        """Write the result of a reduction whose blocks are done, in their order."""
        f, dtype = self.f, _dtype(operation.results[0])
        kind = element_kind(dtype)
        lanes = VectorType(f, self.module, 1)
        with f.loop(count, start=1, hint="blocks") as i:
            more = f.load(kind, f.offset(slot, i, kind))
            f.store(kind, combined(lanes, operation.op.monoid, dtype, f.load(kind, slot), more), slot)
        return f.load(kind, slot)


def _dtype(value: Value) -> DType:
    return tensor_type(value).dtype


def _kind(value: Value) -> str:
    return element_kind(_dtype(value))
