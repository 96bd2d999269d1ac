"""A group as a native function: loops over the space, vectors along its rows.

Outside stand loops over the first axes of the space, one an axis; inside, a row is run through in sweeps. A sweep
computes elements in vectors, and the last few under a mask. A reduction of a row ends its sweep: what depends on its
result is computed in the next one, from the group's operands again or from a copy of the row (`scratch`) where that
is dear.

    void @dy2st.k.<key>(<pointers and numbers read>, <pointers written>, <scratch>, <extents>, <strides>)

Where nothing stands outside of the row, there is one extent, how many elements it has.

A large nest is split between threads: parallel_nest.py writes the function then, and the loops into others beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.core.constant import Full
from dy2st.ops.indexing.class_indices import KeepAt
from dy2st.ops.reduce.reduction import Mean
from dy2st.ops.shape.shape import Broadcast
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.fusion.gather_fusion import pick_in_nest
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, plus, rounded_down
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import element_kind, in_register
from dy2st.runtime.backends.cpu.loop_nests.gather_loads import picked, row_start
from dy2st.runtime.backends.cpu.loop_nests.row_addresses import RowAddresses
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, SweepWork, read_as_elements, vectors_at_once
from dy2st.runtime.backends.cpu.vector_ops.elementwise import compute, converted, is_dear
from dy2st.runtime.backends.cpu.vector_ops.keep_at import kept_at
from dy2st.runtime.backends.cpu.vector_ops.load_store import RowPosition
from dy2st.runtime.backends.cpu.vector_ops.random import member, numbers_of
from dy2st.runtime.backends.cpu.vector_ops.reductions import Accumulator, combined, finished, identity
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Where: TypeAlias = "tuple[dict[Value, str], dict[Value, str], dict[Value, str], list[str]]"
"""Registers of a row's numbers, addresses of its elements, of those at places, and the row's places along axes."""


class LoopNest(RowAddresses):
    """Writes the loops of a group into a function."""

    def __init__(self, module: LLVMModule, target: Target, made: NestLayout):
        super().__init__(module, target, made)
        self.wide = self.count * vectors_at_once(made, self.count)
        """How many elements an iteration of a sweep computes: several vectors, so that no operation waits for the
        last.
        """
        self.makers = {v: o for o in self.group.members for v in o.results}
        self.row: dict[Value, str] = {}
        """Registers of values that are the same along the row that is being written."""
        self.past: dict[Value, str] = {}
        """Whether a result goes past the caches, in the loop that is being written."""
        self.number = "0"
        """The number in its row of the first element that is being written."""
        self.origin = "0"
        """The number of the row's first element, where random numbers need it."""

    def write(self) -> None:
        """Write the nest."""
        self.write_sums()
        self.finish_columns()

    def write_sums(self) -> None:
        """Write the nest, but that its columns stay sums."""
        for value in self.group.columns:
            self.fill_column(value)
        self._outside(0, [])

    def _outside(self, axis: int, counters: list[str]) -> None:
        """Write the loops over the axes outside of rows."""
        if axis == self.made.outer:
            self.row_of(counters)
            return
        start, stop = self.outer_bounds(axis)
        if axis == self.made.outer - 1 and self._reads_ahead():
            self._rows_ahead(counters, start, stop)
            return
        with self.f.loop(stop, start=start, hint="outer") as i:
            self._outside(axis + 1, [*counters, i])

    def outer_bounds(self, axis: int) -> tuple[str, str]:
        """Return where the loop over an axis outside of rows begins and ends."""
        return "0", self.extent(axis)

    # ---- a row -----------------------------------------------------------------------------------------------------
    def row_of(self, counters: list[str]) -> None:
        """Write what becomes of one row."""
        self._begin_row(counters)
        for sweep in range(self.made.sweeps + 1):
            self._row_values(sweep)
            if sweep < self.made.sweeps:
                self.sweep(sweep)
        self._end_row()

    def _begin_row(self, counters: list[str]) -> None:
        """Write where a row stands."""
        self.row, self.base, self.picked, self.counters = {}, dict(self.scratch), {}, counters
        if any(o.op.random_elementwise for o in self.group.members):
            self.origin = self.row_number(counters)
        for value, register in self.reading.items():
            if in_register(value.type):
                self.row[value] = register
            elif value in self.group.maps:
                self.base[value] = self.row_address(value, counters, register)
        for value, register in self.writing.items():
            self.base[value] = self.row_address(value, counters, register)

    def _end_row(self) -> None:
        """Write the results that are numbers of the row."""
        for value, register in self.row.items():
            if value in self.writing and value not in self.group.columns:
                self.one().store(RowPosition(self.base[value], "0", tensor_type(value).dtype), register)

    # ---- a row, and the next one -----------------------------------------------------------------------------------
    def _reads_ahead(self) -> bool:
        """Return whether the last sweep through a row is the first one through the next row too.

        So it is where the last one writes what was kept, as in a softmax, and the first one only adds up: the next row
        comes from memory then while this one goes there. Where the last one reads operands, that takes longer.
        """
        made, members = self.made, self.group.members
        if not made.kept or self.group.columns or any(o.op.random_elementwise or o.op.is_gather for o in members):
            return False
        first, last = made.work(0), made.work(made.sweeps - 1)
        read = {made.reads.get(v, 0) for v in self.reading if v in self.group.maps and not made.is_row(v)}
        dear = {made.at[o.results[0]] for o in members if is_dear(o.op) and not made.is_row(o.results[0])}
        apart = last.sweep > max(read | dear, default=0)
        return apart and bool(first.ends and last.stores) and not (first.stores or last.ends)

    def _rows_ahead(self, counters: list[str], start: str, stop: str) -> None:
        """Write a loop over rows whose first sweeps run ahead by a row; the one behind the last row is that row."""
        f, made = self.f, self.made
        slots = {o: f.slot(element_kind(tensor_type(o.results[0]).dtype)) for o in made.work(0).ends}

        def keep(sums: dict[Value, Accumulator]) -> None:
            for o, slot in slots.items():
                total = finished(f, o, sums[o.results[0]].partial(), self.length)
                f.store(element_kind(tensor_type(o.results[0]).dtype), total, slot)

        with f.when(compare(f, "slt", start, stop), "rows"):
            self._begin_row([*counters, start])
            self._row_values(0)
            keep(self.run_through(made.work(0)))
            with f.loop(stop, start=start, hint="outer") as i:
                self._begin_row([*counters, least(f, plus(f, i, 1), minus(f, stop, 1))])
                self._row_values(0)
                following = self._where()
                self._begin_row([*counters, i])
                self._row_values(0)
                for o, slot in slots.items():
                    self.row[o.results[0]] = f.load(element_kind(tensor_type(o.results[0]).dtype), slot)
                for sweep in range(1, made.sweeps):
                    self._row_values(sweep)
                    if sweep < made.sweeps - 1:
                        self.sweep(sweep)
                keep(self.run_through(made.work(made.sweeps - 1), following))
                self._row_values(made.sweeps)
                self._end_row()

    def _where(self) -> Where:
        """Return what is known of the row that is being written."""
        return self.row, self.base, self.picked, self.counters

    def _go_on_at(self, where: Where) -> None:
        """Go on with another row."""
        self.row, self.base, self.picked, self.counters = where

    def _row_values(self, sweep: int) -> None:
        """Write the values of the row that are known before a sweep."""
        lanes, self.number = VectorType(self.f, self.module, 1), "0"
        for operation in self.group.members:
            (result,) = operation.results
            if result in self.row or result in self.group.columns or not self.made.is_row(result):
                continue
            if self.made.at[result] == sweep and not operation.op.monoid:
                self.row[result] = self._member(
                    lanes, operation, [self._row_value(v) for v in read_as_elements(operation)]
                )

    def _row_value(self, value: Value) -> str:
        if value not in self.row:
            self.row[value] = self.one().load(RowPosition(self.base[value], "0", tensor_type(value).dtype))
        return self.row[value]

    # ---- a sweep ---------------------------------------------------------------------------------------------------
    def sweep(self, sweep: int) -> None:
        """Write one run through the row."""
        work = self.made.work(sweep)
        if not work:
            return
        sums = self.run_through(work)
        for o in work.ends:
            self.row[o.results[0]] = finished(self.f, o, sums[o.results[0]].partial(), self.length)

    def run_through(self, work: SweepWork, following: Where | None = None) -> dict[Value, Accumulator]:
        """Write a run through the elements, full vectors, then the rest under a mask; return the sums.

        It is the first sweep through the `following` row too.
        """
        f, here = self.f, self._where()
        runs = [(work, here)] if following is None else [(self.made.work(0), following), (work, here)]
        sums = {o.results[0]: Accumulator(f, self.module, self.wide, o) for part, _ in runs for o in part.ends}
        for part, where in runs:
            self._go_on_at(where)
            seen: set[Value] = set()
            for v in [*(o.operands[0] for o in (*part.ends, *part.columns)), *part.stores]:
                self._prepare(v, part.sweep, seen)

        def bodies(i: str) -> None:
            for part, where in runs:
                self._go_on_at(where)
                self._body(part, i, sums)

        whole = self._whole()
        self.elements.count = self.wide
        self.past = self.past_caches(work)
        with f.loop(whole, self.wide, self.first, hint="sweep") as i:
            for total in sums.values():
                total.end_strip(i)
            bodies(i)
        self.elements.count, self.past = self.count, {}
        for total in sums.values():
            total.narrow(self.count)
        if self.count > 1:
            with self._rest(whole) as i:
                self.elements.cut(f.value(f"sub i64 {self.stop}, {i}"))
                bodies(i)
                self.elements.mask = None
        return sums

    def _whole(self) -> str:
        """Write where the last iteration of a sweep ends that is a whole one."""
        f = self.f
        if self.wide == 1:
            return self.stop
        if self.first == "0":
            return rounded_down(f, self.stop, self.wide)
        return plus(f, self.first, rounded_down(f, minus(f, self.stop, self.first), self.wide))

    def past_caches(self, work: SweepWork) -> dict[Value, str]:
        """Write which results go past the caches."""
        return {}

    @contextmanager
    def _rest(self, whole: str) -> Iterator[str]:
        """Write what runs for the elements from `whole` on, a vector at a time."""
        if self.wide > self.count:
            with self.f.loop(self.stop, self.count, whole, hint="rest") as i:
                yield i
            return
        with self.f.when(self.f.value(f"icmp slt i64 {whole}, {self.stop}"), "rest"):
            yield whole

    def _prepare(self, value: Value, sweep: int, seen: set[Value]) -> None:
        """Load what a value needs that is the same along the row, so that loops find it in a register."""
        if value in seen:
            return
        seen.add(value)
        if self.made.is_row(value):
            if value not in self.makers:
                self._row_value(value)
            return
        if value in self.makers and not (self.made.at[value] < sweep and value in self.base):
            for operand in read_as_elements(self.makers[value]):
                self._prepare(operand, sweep, seen)
            if value in self.tables:
                self._picked_row(self.makers[value])

    def _body(self, work: SweepWork, i: str, sums: dict[Value, Accumulator]) -> None:
        memo: dict[Value, str] = {}
        made: list[tuple[Value, str]] = []
        lanes, self.number = VectorType(self.f, self.module, self.elements.count), i
        for operation in self.group.members:
            (result,) = operation.results
            if result in work.stores:
                made.append((result, self._vector(lanes, result, work.sweep, i, memo)))
            elif operation in work.ends:
                sums[result].add(self._vector(lanes, operation.operands[0], work.sweep, i, memo), self.elements.mask)
            elif operation in work.columns:
                self._add_to_column(
                    lanes, operation, self._vector(lanes, operation.operands[0], work.sweep, i, memo), i
                )
        for result, register in made:  # last: a result may stand in the memory of an operand that others read
            self._store(result, register, i)

    def _vector(self, lanes: VectorType, value: Value, sweep: int, i: str, memo: dict[Value, str]) -> str:
        """Write the elements of a value at place `i` of the row."""
        if value in memo:
            return memo[value]
        dtype = tensor_type(value).dtype
        if self.made.is_row(value):
            made = lanes.spread(self._row_value(value), dtype)
        elif value not in self.makers or (self.made.at[value] < sweep and value in self.base):
            made = self._load(value, i)
        else:
            operation = self.makers[value]
            read = read_as_elements(operation)
            made = self._member(lanes, operation, [self._vector(lanes, v, sweep, i, memo) for v in read])
        memo[value] = made
        return made

    def _member(self, lanes: VectorType, operation: Operation, registers: list[str]) -> str:
        """Write one member on registers."""
        op = operation.op
        if op.is_reshape or isinstance(op, (Broadcast, Full)):
            return registers[0]
        if isinstance(op, KeepAt):
            x, places = registers
            return kept_at(lanes, tensor_type(operation.results[0]).dtype, x, places, self.number)
        if op.random_elementwise:
            numbers = [self.row[v] for v in numbers_of(operation)]
            return member(lanes, operation, registers, numbers, plus(self.f, self.origin, self.number))
        if op.is_gather:
            return self._picked(lanes, operation, registers)
        return compute(lanes, operation, registers)

    # ---- what is read at places --------------------------------------------------------------------------------------
    def _picked_row(self, operation: Operation) -> str:
        """Write where a row begins in the tensor that it is read of."""
        (result,), pick = operation.results, pick_in_nest(operation)
        if result not in self.picked:
            lanes, map_ = VectorType(self.f, self.module, 1), self.group.maps[result]
            places = {i: self._row_value(v) for i, v in enumerate(pick.places) if self.made.is_row(v)}
            pointer = self.reading[pick.table]
            self.picked[result] = row_start(lanes, pick, self.tables[result], map_, self.counters, places, pointer)
        return self.picked[result]

    def _picked(self, lanes: VectorType, operation: Operation, registers: list[str]) -> str:
        """Write elements that are read at places."""
        (result,), pick = operation.results, pick_in_nest(operation)
        varying = {i: registers[i] for i, v in enumerate(pick.places) if not self.made.is_row(v)}
        elements = self.one() if lanes.count == 1 else self.elements
        where = pick, self.tables[result], self.group, self.group.maps[result]
        return picked(lanes, *where, elements, self._picked_row(operation), self.number, varying)

    # ---- memory ----------------------------------------------------------------------------------------------------
    def _load(self, value: Value, i: str) -> str:
        return self.elements.load(self.place(value, i))

    def _store(self, value: Value, register: str, i: str) -> None:
        self.elements.store(self.place(value, i), register, self.past.get(value))

    # ---- columns ---------------------------------------------------------------------------------------------------
    def column_loop(self, value: Value, write: Any) -> None:
        """Write one run through a column result, element by element of its row."""
        f, pointer = self.f, self.writing[value]
        self.base[value] = pointer
        whole = self.stop if self.count == 1 else f.value(f"and i64 {self.stop}, {-self.count}")
        count = self.count
        with f.loop(whole, count, self.first, hint="column") as i:
            write(i)
        if count > 1:
            self.elements.count = 1
            with f.loop(self.stop, 1, whole, hint="rest") as i:
                write(i)
            self.elements.count = count

    def fill_column(self, value: Value) -> None:
        """Write what changes nothing into a column."""
        operation, dtype = self.makers[value], tensor_type(value).dtype

        def write(i: str) -> None:
            constant = VectorType(self.f, self.module, self.elements.count).constant(
                identity(operation.op.monoid, dtype), dtype
            )
            self._store(value, constant, i)

        self.column_loop(value, write)

    def _add_to_column(self, lanes: VectorType, operation: Operation, register: str, i: str) -> None:
        (result,) = operation.results
        dtype, source = tensor_type(result).dtype, tensor_type(operation.operands[0]).dtype
        so_far = self._load(result, i)
        total = combined(lanes, operation.op.monoid, dtype, so_far, converted(lanes, register, source, dtype))
        self._store(result, total, i)

    def finish_columns(self) -> None:
        """Write what becomes of the sums."""
        for value in self.group.columns:
            if isinstance(self.makers[value].op, Mean):
                self._divide_column(value)

    def _divide_column(self, value: Value) -> None:
        dtype = tensor_type(value).dtype
        rows = self.product([self.extent(axis) for axis in range(self.made.outer)])
        divisor = self.f.value(f"sitofp i64 {rows} to {element_kind(dtype)}")

        def write(i: str) -> None:
            lanes = VectorType(self.f, self.module, self.elements.count)
            mean = self.f.value(f"fdiv {lanes.of(dtype)} {self._load(value, i)}, {lanes.spread(divisor, dtype)}")
            self._store(value, mean, i)

        self.column_loop(value, write)
