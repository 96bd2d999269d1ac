"""How pooling goes through its windows: by rows of results, as many beside each other as a vector has lanes.

Rows of a window that lie in the padding are left out; in a row, lanes outside read a value that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dy2st.records import record, replace
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import ConvShape, axis_fields, inside
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_memory, masked_store, span_mask, spread
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, most, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_COST = 300
"""Picoseconds that an element of a window takes."""
_FIELDS = ("batch", "channels", *axis_fields("in", "kernel", "out", "stride", "low", "high"))


@record(frozen=True)
class PoolWindow:
    """A window, or as many beside each other as there are lanes: where it begins in the padded input."""

    plane: str
    number: str
    """The place of the first result among all."""
    left: str
    """The results from here to the end of the row."""
    outer: tuple[str, str]
    """The first place along the two outer axes, maybe negative."""
    start: str
    """The first place of the first lane along the last axis, maybe negative."""
    whole: str
    """Whether vectors may be read as they lie: no lane meets padding, and what a read has too much is there."""


class PoolLoops:
    """The loops over planes, results and the rows of a window."""

    def __init__(self, f: LLVMFunction, t: Tile):
        self.f, self.tile = f, t
        self.shape = ConvShape(f, _FIELDS)
        self.planes = times(f, self.shape["batch"], self.shape["channels"])

    @contextmanager
    def windows(self) -> Iterator[PoolWindow]:
        """Write loops over all windows, as many at a time as there are lanes."""
        f, shape = self.f, self.shape
        extents = shape.axes("out")
        with f.loop("%to", start="%from") as plane, f.loop(extents[0]) as z, f.loop(extents[1]) as y:
            row = plus(f, times(f, plane, extents[0]), z)
            row = plus(f, times(f, row, extents[1]), y)
            before = times(f, row, extents[2])
            outer = (self._start(0, z), self._start(1, y))
            with f.loop(extents[2], step=self.tile.lanes) as x:
                left = minus(f, extents[2], x)
                start = self._start(2, x)
                yield PoolWindow(plane, plus(f, before, x), left, outer, start, self._whole(plane, z, y, start, left))

    def _whole(self, plane: str, z: str, y: str, start: str, left: str) -> str:
        """Write whether all windows of a vector are inside their row, and two vectors behind their ends in memory."""
        f, shape = self.f, self.shape
        extents = shape.axes("in")
        reach = times(f, minus(f, least(f, left, self.tile.lanes), 1), shape["stride2"])
        inside_row = compare(f, "sle", plus(f, start, reach, shape["kernel2"]), extents[2])
        row = plus(f, self._start(0, z), minus(f, shape["kernel0"], 1))
        line = plus(f, self._start(1, y), minus(f, shape["kernel1"], 1))
        last = plus(f, times(f, plus(f, times(f, plane, extents[0]), row), extents[1]), line)
        end = plus(f, times(f, last, extents[2]), start, shape["kernel2"], 2 * self.tile.lanes)
        inside_memory = compare(f, "sle", end, times(f, self.planes, *extents))
        return all_of(f, compare(f, "sge", start, 0), inside_row, inside_memory)

    def _start(self, axis: int, out: str) -> str:
        strided = self.f.value(f"mul i64 {out}, {self.shape[f'stride{axis}']}")
        return self.f.value(f"sub i64 {strided}, {self.shape[f'low{axis}']}")

    def end(self, axis: int, start: str) -> str:
        """Write where a window ends, at the latest behind the input."""
        behind = self.f.value(f"add i64 {start}, {self.shape[f'kernel{axis}']}")
        return least(self.f, behind, self.shape[f"in{axis}"])

    @contextmanager
    def rows(self, window: PoolWindow) -> Iterator[tuple[str, str]]:
        """Write loops over the rows of the input that meet a window: their addresses and their numbers in the plane."""
        f, extents = self.f, self.shape.axes("in")
        spans = [(most(f, start, 0), self.end(axis, start)) for axis, start in enumerate(window.outer)]
        plane = times(f, window.plane, *extents)
        with f.loop(spans[0][1], start=spans[0][0]) as z, f.loop(spans[1][1], start=spans[1][0]) as y:
            number = plus(f, times(f, z, extents[1]), y)
            before = times(f, number, extents[2])
            yield f.offset("%x", plus(f, plane, before), self.tile.element), before


def by_stride(name: str, parameters: Sequence[tuple[str, str]], t: Tile,
               body: Callable[[PoolLoops, PoolWindow], None]) -> Definition:  # fmt: skip
    """Return the function that takes vectors where windows move by 1 or 2, else elements."""

    def written(symbol: str, lanes: int) -> Definition:
        f = LLVMFunction(symbol, (*parameters, *RANGE), linkage="internal", also="noinline nounwind")
        walk = PoolLoops(f, replace(t, lanes=lanes))
        with walk.windows() as window:
            body(walk, window)
        f.ret()
        return Definition(symbol, f.text(), masked_memory(walk.tile) + _masked_places(lanes) if lanes > 1 else ())

    f = LLVMFunction(name, parameters, linkage="internal", also="nounwind")
    shape = ConvShape(f, ["batch", "channels", "stride2", *axis_fields("kernel", "out")])
    planes = times(f, shape["batch"], shape["channels"])
    cost = times(f, *shape.axes("kernel"), *shape.axes("out"), _COST)
    short = compare(f, "sle", shape["stride2"], 2)
    one = written(f"{name}.elements", 1)
    choices = (
        [("true", one)] if t.lanes == 1 else [(short, written(f"{name}.vectors", t.lanes)), (negation(f, short), one)]
    )
    needs: list[Definition] = []
    for condition, function in choices:
        with f.when(condition):
            needs += [function, forked(f, function.name, parameters, planes, cost)]
    f.ret()
    return Definition(name, f.text(), tuple(needs))


def lane_places(walk: PoolLoops, first: str) -> str:
    """Write first + lane * stride."""
    if walk.tile.lanes == 1:
        return first
    f, lanes, wide = walk.f, walk.tile.lanes, integer_type(walk.tile.lanes)
    steps = f"<{', '.join(f'i64 {i}' for i in range(lanes))}>"
    strided = f.value(f"mul {wide} {steps}, {in_all_lanes(walk, walk.shape['stride2'])}")
    return f.value(f"add {wide} {strided}, {in_all_lanes(walk, first)}")


def in_all_lanes(walk: PoolLoops, scalar: str) -> str:
    """Write an integer into all lanes."""
    return spread(walk.f, replace(walk.tile, dtype="i64"), scalar)


def strided(walk: PoolLoops, window: PoolWindow, row: str, tap: str, otherwise: str) -> str:
    """Write the elements of a row that meet a place of the windows, and `otherwise` where those are outside of it."""
    f, t, extent = walk.f, walk.tile, walk.shape["in2"]
    found, at = f.slot(t.vector), plus(f, window.start, tap)
    f.store(t.vector, otherwise, found)
    if t.lanes == 1:
        with f.when(inside(f, at, extent)):
            f.store(t.vector, f.load(t.element, f.offset(row, at, t.element)), found)
        return f.load(t.vector, found)
    for condition, read in ((window.whole, _as_it_lies), (negation(f, window.whole), _contiguous)):
        with f.when(condition):
            first = read(walk, row, at, otherwise)
            f.store(t.vector, first, found)
            with f.when(compare(f, "eq", walk.shape["stride2"], 2)):
                second = read(walk, row, plus(f, at, t.lanes), otherwise)
                evens = ", ".join(f"i32 {2 * i}" for i in range(t.lanes))
                both = f"{t.vector} {first}, {t.vector} {second}"
                f.store(t.vector, f.value(f"shufflevector {both}, <{t.lanes} x i32> <{evens}>"), found)
    return f.load(t.vector, found)


def _as_it_lies(walk: PoolLoops, row: str, at: str, _: str) -> str:
    """Write a vector of a row from `at` on, all of which is there."""
    place = walk.f.offset(row, at, walk.tile.element)
    return walk.f.value(f"load {walk.tile.vector}, ptr {place}, align {walk.tile.size}")


def _contiguous(walk: PoolLoops, row: str, at: str, otherwise: str) -> str:
    """Write a vector of a row from `at` on, which may be before it."""
    f, t = walk.f, walk.tile
    mask = span_mask(f, t.lanes, minus(f, 0, at), minus(f, walk.shape["in2"], at))
    place = f.value(f"getelementptr {t.element}, ptr {row}, i64 {at}")
    return f.call(t.vector, f"@llvm.masked.load.{t.suffix}.p0", f"ptr {place}", f"i32 {t.size}",
                  f"{mask_type(t)} {mask}", f"{t.vector} {otherwise}")  # fmt: skip


def write_results(walk: PoolLoops, window: PoolWindow, base: str, values: str) -> None:
    """Write stores of the results of windows that are beside each other."""
    f, t = walk.f, walk.tile
    there = f.offset(base, window.number, t.element)
    if t.lanes == 1:
        f.store(t.element, values, there)
    else:
        masked_store(f, t, values, there, lane_mask(f, t.lanes, window.left))


def write_places(walk: PoolLoops, window: PoolWindow, places: str) -> None:
    """Write stores of places, as `write_results` does of results."""
    f, lanes = walk.f, walk.tile.lanes
    there = f.offset("%places", window.number, "i64")
    if lanes == 1:
        f.store("i64", places, there)
    else:
        mask = lane_mask(f, lanes, window.left)
        f.call("void", f"@llvm.masked.store.v{lanes}i64.p0", f"{integer_type(lanes)} {places}", f"ptr {there}", "i32 8",
               f"<{lanes} x i1> {mask}")  # fmt: skip


def _masked_places(lanes: int) -> tuple[Definition]:
    name = f"llvm.masked.store.v{lanes}i64.p0"
    return (Definition(name, f"declare void @{name}({integer_type(lanes)}, ptr, i32 immarg, <{lanes} x i1>)"),)


def integer_type(lanes: int, bits: int = 64) -> str:
    """Return the LLVM type of integers in lanes."""
    return f"i{bits}" if lanes == 1 else f"<{lanes} x i{bits}>"


def mask_type(t: Tile) -> str:
    """Return the LLVM type of a comparison of vectors."""
    return "i1" if t.lanes == 1 else f"<{t.lanes} x i1>"


def bounded(walk: PoolLoops, predicate: str, values: str, bound: str) -> str:
    """Write the values, or the bound where they do not compare so with it."""
    wide, bounds = integer_type(walk.tile.lanes), in_all_lanes(walk, bound)
    kept = walk.f.value(f"icmp {predicate} {wide} {values}, {bounds}")
    return walk.f.value(f"select {mask_type(walk.tile)} {kept}, {wide} {values}, {wide} {bounds}")
