"""Loop nests as kernels: the CPU's rows, sweeps and formulas, with threads where the CPU has vectors.

| nest | what a thread does |
|---|---|
| `Map` | elements, each by itself: no reduction |
| `ShortRows` | whole rows, one after the other |
| `Rows` | elements of a row; a block adds up what its threads have. Over rows, each block has sums of its own |
| `Whole` | elements of the one row there is: a kernel a sweep, each adds up what the blocks of those before have |
| `Columns` | elements of a row: what the blocks of `Rows` have, one after the other |

Which block runs what depends on extents alone, and what blocks have is taken in their order: the same bits in each run.
"""

from __future__ import annotations

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.reduce.reduction import Mean
from dy2st.records import record
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import element_kind, in_register
from dy2st.runtime.backends.cpu.loop_nests.emit import LoopNest
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, SweepWork
from dy2st.runtime.backends.cpu.vector_ops.load_store import RowPosition
from dy2st.runtime.backends.cpu.vector_ops.reductions import Accumulator, combined, finished, identity
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType
from dy2st.runtime.backends.cuda.grid import ENTRY, WARP, Grid, PerThread, first_of_all
from dy2st.runtime.backends.cuda.target import NESTS

MOST_BLOCKS = 2048
"""Of a kernel: what there is more of is done in turns."""
SUM_BLOCKS = 256
"""Blocks that have sums of their own: as many as one block has threads, which adds them up."""
THREADS = 256


@record(frozen=True)
class Kernel:
    """The text of a kernel, its parameters (what each is, and its LLVM type), and how many threads a block has."""

    text: str
    parameters: tuple[tuple[object, str], ...]
    threads: int


class DeviceNest(LoopNest):
    """Writes a kernel for a group; `parameters` names what it takes."""

    def __init__(self, grid: type[Grid], made: NestLayout, threads: int):
        super().__init__(LLVMModule(), NESTS, made)
        self._names = self._named()
        read = [(_parameter_kind(v), register) for v, register in self.reading.items()]
        self.given = [*read, *self.parameters[len(read) :], *self.also()]
        self.grid = grid(self.module, self.given, threads)
        self.threads = threads
        self.begin(self.grid.f)
        for value, register in list(self.reading.items()):
            if in_register(value.type) and _parameter_kind(value) == "ptr":
                self.reading[value] = self.one().load(RowPosition(register, "0", tensor_type(value).dtype))

    def _named(self) -> list[object]:
        """Return what each parameter is."""
        return [
            *(("read", v) for v in self.reading),
            *(("write", v) for v in self.writing),
            *(("scratch", v) for v in self.scratch),
            *(("extent", i) for i in range(len(self.extents))),
            *(("stride", v, j) for v, s in self.strides.items() for j, one in enumerate(s) if not one.isdigit()),
        ]

    def also(self) -> list[tuple[str, str]]:
        """Return the parameters of this kind of nest behind those of the group."""
        return []

    def kernel(self) -> Kernel:
        """Write the kernel."""
        with self.grid.body():
            self.write_block()
        names = [*self._names, *(register.removeprefix("%") for _, register in self.also())]
        self.module.add(ENTRY, self.f.text())
        kinds = [kind for kind, _ in self.given]
        return Kernel(self.module.text(), tuple(zip(names, kinds, strict=True)), self.threads)

    def write_block(self) -> None:
        """Write what a block does."""
        raise NotImplementedError

    # ---- places ------------------------------------------------------------------------------------------------------
    def rows(self) -> str:
        """Write how many rows there are."""
        return self.product(self.extents[: self.made.outer]) if self.made.outer else "1"

    def row_counters(self, row: str) -> list[str]:
        """Write the places of a row along the axes outside of it."""
        counters: list[str] = []
        for axis in reversed(range(self.made.outer)):
            if axis == 0:
                counters.append(row)
                break
            extent = self.extent(axis)
            row, place = self.divided(row, extent)
            counters.append(place)
        return counters[::-1]

    def divided(self, number: str, by: str) -> tuple[str, str]:
        """Write a quotient and a remainder of numbers that are not negative."""
        quotient = self.f.value(f"udiv i64 {number}, {by}")
        return quotient, minus(self.f, number, times(self.f, quotient, by))

    def move(self, room: dict[Value, str], values: list[Value], number: str) -> None:
        """Let rooms for a row each begin at the one of this number."""
        for value in values:
            size = tensor_type(value).dtype.itemsize
            room[value] = self.f.offset(room[value], times(self.f, number, self.length, size))

    # ---- sums --------------------------------------------------------------------------------------------------------
    def element_loop(self, work: SweepWork, thread: str, start: str, step: str | int) -> dict[Operation, str]:
        """Write what a thread does in a sweep; return what it adds up."""
        sums = {o.results[0]: Accumulator(self.f, self.module, 1, o) for o in work.ends}
        self.elements.count, self.elements.mask = 1, None
        with self.f.loop(self.stop, step, start, hint="sweep") as i:
            self._body(work, i, sums)
        return {o: sums[o.results[0]].partial() for o in work.ends}

    def prepare(self, work: SweepWork) -> None:
        """Load what a sweep reads that is the same along the row."""
        seen: set[Value] = set()
        for value in [*(o.operands[0] for o in (*work.ends, *work.columns)), *work.stores]:
            self._prepare(value, work.sweep, seen)

    def total(self, operation: Operation, own: PerThread) -> str:
        """Write what all threads of a block have together: lane by lane, then warp by warp."""
        f, grid, lanes = self.f, self.grid, VectorType(self.f, self.module, 1)
        monoid, dtype = operation.op.monoid, tensor_type(operation.results[0]).dtype
        distance = WARP // 2
        while distance:
            other = grid.swapped(own, distance)
            with grid.threads() as t:
                own.store(t, combined(lanes, monoid, dtype, own.load(t), other.load(t)))
            distance //= 2
        warps = max(1, grid.count // WARP)
        shared = grid.shared(own.kind, warps)
        with grid.threads() as t, f.when(compare(f, "eq", f.value(f"and i64 {t}, {WARP - 1}"), 0), "lane"):
            f.store(own.kind, own.load(t), f.offset(shared, f.value(f"lshr i64 {t}, 5"), own.kind))
        grid.barrier()
        found = f.load(own.kind, shared)
        for warp in range(1, warps):
            found = combined(lanes, monoid, dtype, found, f.load(own.kind, f.offset(shared, warp, own.kind)))
        grid.barrier()  # before somebody writes there again
        return found

    def own_of(self, operation: Operation) -> PerThread:
        """Return room in which each thread has its part of a sum."""
        return self.grid.own(element_kind(tensor_type(operation.results[0]).dtype))


class Map(DeviceNest):
    """Elements, each by itself."""

    def write_block(self) -> None:
        total = times(self.f, self.rows(), self.length)
        with self.grid.threads() as thread:
            first, step = first_of_all(self.grid, thread)
            with self.f.loop(total, step, first, hint="element") as number:
                self._element(number)

    def _element(self, number: str) -> None:
        row, i = ("0", number) if not self.made.outer else self.divided(number, self.length)
        self._begin_row(self.row_counters(row))
        for sweep in range(self.made.sweeps + 1):
            self._row_values(sweep)
            if sweep < self.made.sweeps:
                work = self.made.work(sweep)
                self.prepare(work)
                self._body(work, i, {})
        if any(self.made.is_row(v) for v in self.writing):
            with self.f.when(compare(self.f, "eq", i, 0), "row"):
                self._end_row()


class ShortRows(DeviceNest):
    """Rows that a thread runs through alone."""

    def write_block(self) -> None:
        rooms = dict(self.scratch)
        with self.grid.threads() as thread:
            first, step = first_of_all(self.grid, thread)
            with self.f.loop(self.rows(), step, first, hint="row") as row:
                self.scratch = dict(rooms)
                self.move(self.scratch, self.made.kept, row)
                self.row_of(self.row_counters(row))


class Rows(DeviceNest):
    """Rows that a block runs through together."""

    def write_block(self) -> None:
        self.move(self.scratch, self.made.kept, self.grid.block)
        columns = list(self.group.columns)
        self.move(self.writing, columns, self.grid.block)
        for value in columns:
            self._fill(value)
        with self.f.loop(self.rows(), self.grid.blocks, self.grid.block, hint="row") as row:
            self.row_of(self.row_counters(row))

    def _fill(self, value: Value) -> None:
        dtype = tensor_type(value).dtype
        nothing = VectorType(self.f, self.module, 1).constant(identity(self.makers[value].op.monoid, dtype), dtype)
        with self.grid.threads() as thread, self.f.loop(self.stop, self.threads, thread, hint="column") as i:
            self.one().store(RowPosition(self.writing[value], i, dtype), nothing)

    def sweep(self, sweep: int) -> None:
        work = self.made.work(sweep)
        if not work:
            return
        self.prepare(work)
        owned = {o: self.own_of(o) for o in work.ends}
        with self.grid.threads() as thread:
            for o, partial in self.element_loop(work, thread, thread, self.threads).items():
                owned[o].store(thread, partial)
        for o, own in owned.items():
            self.row[o.results[0]] = finished(self.f, o, self.total(o, own), self.length)

    def _end_row(self) -> None:
        if any(v in self.writing and v not in self.group.columns for v in self.row):
            with self.grid.one():
                super()._end_row()


class Whole(DeviceNest):
    """One sweep through the one row there is; `%parts` blocks have run those before, and their sums stand there."""

    def __init__(self, grid: type[Grid], made: NestLayout, threads: int, number: int):
        self.turn = number
        self.ends = [o for sweep in range(made.sweeps) for o in made.work(sweep).ends if sweep <= number]
        super().__init__(grid, made, threads)

    def also(self) -> list[tuple[str, str]]:
        return [*(("ptr", f"%sums{i}") for i in range(len(self.ends))), ("i64", "%parts")]

    def write_block(self) -> None:
        self._begin_row([])
        for sweep in range(self.turn):
            self._row_values(sweep)
            for o in self.made.work(sweep).ends:
                self.row[o.results[0]] = finished(self.f, o, self._sum_of_blocks(o), self.length)
        self._row_values(self.turn)
        if self.turn == self.made.sweeps:
            with self.grid.one():
                self._end_row()
            return
        work = self.made.work(self.turn)
        self.prepare(work)
        owned = {o: self.own_of(o) for o in work.ends}
        with self.grid.threads() as thread:
            first, step = first_of_all(self.grid, thread)
            for o, partial in self.element_loop(work, thread, first, step).items():
                owned[o].store(thread, partial)
        for o, own in owned.items():
            total = self.total(o, own)
            with self.grid.one():
                self.one().store(self._place_of_sum(o, self.grid.block), total)

    def _place_of_sum(self, operation: Operation, block: str) -> RowPosition:
        return RowPosition(f"%sums{self.ends.index(operation)}", block, tensor_type(operation.results[0]).dtype)

    def _sum_of_blocks(self, operation: Operation) -> str:
        """Write what all blocks have together: a thread reads what one block has."""
        dtype, own = tensor_type(operation.results[0]).dtype, self.own_of(operation)
        with self.grid.threads() as thread:
            nothing = VectorType(self.f, self.module, 1).constant(identity(operation.op.monoid, dtype), dtype)
            own.store(thread, nothing)
            with self.f.when(compare(self.f, "slt", thread, "%parts"), "part"):
                own.store(thread, self.one().load(self._place_of_sum(operation, thread)))
        return self.total(operation, own)


class Columns(DeviceNest):
    """Sums over rows, of what blocks have of them: rooms of a row each, `%parts` of them, from `%sums0` on."""

    def also(self) -> list[tuple[str, str]]:
        return [*(("ptr", f"%sums{i}") for i in range(len(self.group.columns))), ("i64", "%parts")]

    def write_block(self) -> None:
        with self.grid.threads() as thread:
            first, step = first_of_all(self.grid, thread)
            with self.f.loop(self.stop, step, first, hint="column") as i:
                for number, value in enumerate(self.group.columns):
                    self._column(number, value, i)

    def _column(self, number: int, value: Value, i: str) -> None:
        operation, dtype, f = self.makers[value], tensor_type(value).dtype, self.f
        lanes, kind = VectorType(f, self.module, 1), element_kind(dtype)
        slot = f.slot(kind)
        f.store(kind, lanes.constant(identity(operation.op.monoid, dtype), dtype), slot)
        with f.loop("%parts", hint="part") as part:
            more = self.one().load(RowPosition(f"%sums{number}", plus(f, times(f, part, self.length), i), dtype))
            f.store(kind, combined(lanes, operation.op.monoid, dtype, f.load(kind, slot), more), slot)
        total = f.load(kind, slot)
        if isinstance(operation.op, Mean):
            rows = f.value(f"sitofp i64 {self.rows()} to {kind}")
            total = f.value(f"fdiv {kind} {total}, {rows}")
        self.one().store(RowPosition(self.writing[value], i, dtype), total)


def _parameter_kind(value: Value) -> str:
    """Return the type of the parameter for a value that is read: numbers come as they are, tensors by address."""
    return "ptr" if isinstance(value.type, TensorType) else "i64"


def threads_for(row: int) -> int:
    """Return how many threads run through a row of so many elements together."""
    return WARP if row <= 4 * WARP else 4 * WARP if row <= 32 * WARP else THREADS
