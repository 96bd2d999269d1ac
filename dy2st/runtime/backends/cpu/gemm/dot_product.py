"""A times B transposed where both lie along k: dot products of a few rows of each, without packing.

Rows past the last are computed as copies of the last and not stored.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from dy2st.runtime.backends.cpu.gemm.microkernel import fmuladd, fused, lane_mask, masked_load, masked_memory
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import (
    all_of,
    compare,
    least,
    minus,
    most,
    negation,
    plus,
    rounded_down,
    times,
)
from dy2st.runtime.backends.cpu.llvm_ir.prefetch import PREFETCH, prefetch
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

PARAMETERS = (
    ("ptr", "%a"), ("i64", "%a_row"), ("ptr", "%b"), ("i64", "%b_row"), ("ptr", "%c"), ("i64", "%c_row"),
    ("i64", "%c_column"), ("i64", "%m"), ("i64", "%n"), ("i64", "%k"), ("i1", "%accumulate"),
)  # fmt: skip
"""Strides are in bytes."""
_STEP_COST, _ENDS = 300, 4
"""Picoseconds of one multiplication and addition of vectors, and as how many of them the sum across counts."""
FAR = (*PARAMETERS, ("ptr", "%following"))
"""Of a kernel whose A comes from memory that is far: where the rows begin that are read next, as far apart."""
_VECTOR = (("ptr", "%a"), ("ptr", "%b"), ("i64", "%b_row"), ("ptr", "%c"), ("i64", "%k"), ("i1", "%accumulate"))


@functools.cache
def dot_product(tile: Tile) -> Definition:
    """Return the function that computes all of C by dot products, in blocks of `tile.dots`, its columns split."""
    body = _range(tile)
    f = LLVMFunction(f"dy2st.gemm.{tile.dtype}.dot", PARAMETERS, linkage="internal", also="noinline nounwind")
    columns = tile.dots[1]
    steps = plus(f, f.value(f"sdiv i64 %k, {tile.lanes}"), _ENDS)
    cost = times(f, steps, plus(f, "%m", 1), columns * _STEP_COST)
    part = forked(f, body.name, PARAMETERS, most(f, f.value(f"sdiv i64 %n, {columns}"), 1), cost)
    f.ret()
    return Definition(f.name, f.text(), (body, part))


@functools.cache
def _range(tile: Tile) -> Definition:
    """Return the function that computes some columns of C."""
    name = f"dy2st.gemm.{tile.dtype}.dots"
    f = LLVMFunction(name, (*PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    rows, columns = tile.dots
    many, one = dot_kernel(tile, rows), dot_kernel(tile, 1)
    needs = [many, one]
    single = compare(f, "eq", "%m", 1)
    last = compare(f, "sge", "%to", f.value(f"sdiv i64 %n, {columns}"))
    stop = f.value(f"select i1 {last}, i64 %n, i64 {times(f, '%to', columns)}")
    start = times(f, "%from", columns)
    if tile.lanes > columns:
        vectors = _vectors(tile)
        needs.append(vectors)
        start = _written_vectors(f, tile, vectors, single, (start, stop))
    with f.loop(stop, step=columns, start=start) as j:
        b = f.offset("%b", times(f, j, "%b_row"))
        c = f.offset("%c", times(f, j, "%c_column"))
        n = minus(f, "%n", j)
        shared = (f"ptr {b}", "i64 %b_row")
        rest = ("i64 %c_row", "i64 %c_column", "i64 %m", f"i64 {n}", "i64 %k", "i1 %accumulate")
        with f.when(single):
            f.call("void", f"@{one.name}", "ptr %a", "i64 %a_row", *shared, f"ptr {c}", *rest)
        with f.when(negation(f, single)), f.loop("%m", step=rows) as i:
            a = f.offset("%a", times(f, i, "%a_row"))
            c_here = f.offset(c, times(f, i, "%c_row"))
            m = minus(f, "%m", i)
            f.call("void", f"@{many.name}", f"ptr {a}", "i64 %a_row", *shared, f"ptr {c_here}", *rest[:2],
                   f"i64 {m}", *rest[3:])  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


def _written_vectors(f: LLVMFunction, tile: Tile, vectors: Definition, single: str, bounds: tuple[str, str]) -> str:
    """Write the dot products of one row with as many columns as fill vectors of C; return where the rest begins."""
    start, stop = bounds
    dense = all_of(f, single, compare(f, "eq", "%c_column", tile.size))
    count = f.value(f"select i1 {dense}, i64 {rounded_down(f, minus(f, stop, start), tile.lanes)}, i64 0")
    rest = plus(f, start, count)
    with f.loop(rest, step=tile.lanes, start=start) as j:
        b, c = f.offset("%b", times(f, j, "%b_row")), f.offset("%c", times(f, j, tile.size))
        f.call("void", f"@{vectors.name}", "ptr %a", f"ptr {b}", "i64 %b_row", f"ptr {c}", "i64 %k",
               "i1 %accumulate")  # fmt: skip
    return rest


@functools.cache
def _vectors(tile: Tile) -> Definition:
    """Return the kernel for one row of A by as many of B as a vector of C has elements: the bits of `dot_kernel`."""
    name = f"dy2st.gemm.{tile.dtype}.dot.vector"
    f = LLVMFunction(name, _VECTOR, linkage="internal", also="noinline nounwind")
    block = DotBlock(f, tile, ["%a"], [f.offset("%b", times(f, "%b_row", i)) for i in range(tile.lanes)])
    block.add_all()
    block.write_vector("%accumulate")
    f.ret()
    return Definition(name, f.text(), dot_needs(tile))


@functools.cache
def dot_kernel(tile: Tile, rows: int, far: bool = False) -> Definition:
    """Return the kernel for `rows` rows of A by `tile.dots[1]` of B; of a `far` A it asks for the next rows."""
    columns = tile.dots[1]
    name = f"dy2st.gemm.{tile.dtype}.dot.{rows}x{columns}{'.far' * far}"
    f = LLVMFunction(name, FAR if far else PARAMETERS, linkage="internal", also="noinline nounwind")
    a_rows, _ = clamped(f, "%a", "%a_row", "%m", rows)
    b_rows, _ = clamped(f, "%b", "%b_row", "%n", columns)
    block = DotBlock(f, tile, a_rows, b_rows)
    block.add_all([f.offset("%following", times(f, "%a_row", i)) for i in range(rows if far else 0)])
    block.write("%accumulate")
    f.ret()
    return Definition(name, f.text(), (*dot_needs(tile), PREFETCH))


def clamped(f: LLVMFunction, base: str, stride: str, count: str, rows: int) -> tuple[list[str], list[str]]:
    """Write the addresses and numbers of the first rows, those past the last made the last."""
    last = minus(f, count, 1)
    addresses, numbers = [base], ["0"]
    for i in range(1, rows):
        below = compare(f, "slt", last, i)
        numbers.append(f.value(f"select i1 {below}, i64 {last}, i64 {i}"))
        addresses.append(f.offset(base, times(f, numbers[-1], stride)))
    return addresses, numbers


class DotBlock:
    """The dot products of some rows with some others, summed up in vectors."""

    def __init__(self, f: LLVMFunction, tile: Tile, a_rows: list[str], b_rows: list[str]):
        self._f, self._tile, self._a_rows, self._b_rows = f, tile, a_rows, b_rows
        self._sums = [[f.slot(tile.vector) for _ in b_rows] for _ in a_rows]
        for place in (place for row in self._sums for place in row):
            f.store(tile.vector, "zeroinitializer", place)

    def add_all(self, following: Sequence[str] = ()) -> None:
        """Write the sums of all %k elements, asking for those of other rows as far along."""
        f, tile = self._f, self._tile
        whole = rounded_down(f, "%k", tile.lanes)
        with f.loop(whole, step=tile.lanes) as p:
            at = times(f, p, tile.size)
            for row in following:
                prefetch(f, f.offset(row, at))
            self.add(at, at)
        left = minus(f, "%k", whole)
        with f.when(compare(f, "sgt", left, 0)):
            at = times(f, whole, tile.size)
            self.add(at, at, left)

    def add(self, a_at: str, b_at: str, count: str | None = None) -> None:
        """Write the sums on by a vector at these bytes of the rows, or by its first `count` elements."""
        f, tile = self._f, self._tile
        if count is not None and tile.lanes == 1:
            return
        mask = None if count is None else lane_mask(f, tile.lanes, count)

        def read(address: str) -> str:
            if mask is not None:
                return masked_load(f, tile, address, mask)
            return f.value(f"load {tile.vector}, ptr {address}, align {tile.size}")

        self.add_vectors(
            [read(f.offset(a, a_at)) for a in self._a_rows], [read(f.offset(b, b_at)) for b in self._b_rows]
        )

    def add_vectors(self, left: list[str], right: list[str]) -> None:
        """Write the sums on by vectors that are in registers."""
        f, tile = self._f, self._tile
        for a, sums in zip(left, self._sums, strict=True):
            for factor, place in zip(right, sums, strict=True):
                f.store(tile.vector, fused(f, tile, a, factor, f.load(tile.vector, place)), place)

    def add_scaled(self, part: DotBlock, factors: Sequence[str]) -> None:
        """Write the sums on by those of another block, times a factor for each row on the right."""
        f, tile = self._f, self._tile
        for sums, others in zip(self._sums, part._sums, strict=True):
            for place, other, factor in zip(sums, others, factors, strict=True):
                total = fused(f, tile, f.load(tile.vector, other), factor, f.load(tile.vector, place))
                f.store(tile.vector, total, place)

    def write(self, accumulate: str) -> None:
        """Write the sums of the %m x %n rows that there are to %c, or add them to it."""
        f, tile, t = self._f, self._tile, self._tile.element
        columns = len(self._b_rows)
        apart = 1 << (columns - 1).bit_length()
        totals = f.slot(t, len(self._a_rows) * apart)
        for i, row in enumerate(self._sums):
            vectors = [f.load(tile.vector, row[min(j, columns - 1)]) for j in range(apart)]
            _write_across(f, tile, vectors, f.offset(totals, i * apart, t))
        with f.loop(least(f, "%m", len(self._a_rows))) as i, f.loop(least(f, "%n", columns)) as j:
            total = f.slot(t)
            f.store(t, f.load(t, f.offset(totals, plus(f, times(f, i, apart), j), t)), total)
            row = f.offset("%c", times(f, i, "%c_row"))
            there = f.offset(row, times(f, j, "%c_column"))
            with f.when(accumulate):
                f.store(t, f.value(f"fadd {t} {f.load(t, there)}, {f.load(t, total)}"), total)
            f.store(t, f.load(t, total), there)

    def write_vector(self, accumulate: str) -> None:
        """Write the sums of one row with as many as a vector has elements to %c, or add them to it."""
        f, tile = self._f, self._tile
        totals, (row,) = f.slot(tile.vector), self._sums
        _write_across(f, tile, [f.load(tile.vector, place) for place in row], totals)
        with f.when(accumulate):
            there = f.value(f"load {tile.vector}, ptr %c, align {tile.size}")
            f.store(tile.vector, f.value(f"fadd {tile.vector} {there}, {f.load(tile.vector, totals)}"), totals)
        f.do(f"store {tile.vector} {f.load(tile.vector, totals)}, ptr %c, align {tile.size}")


def dot_needs(tile: Tile) -> tuple[Definition, ...]:
    """Declare what a `DotBlock` calls."""
    return (fmuladd(tile), *(masked_memory(tile) if tile.lanes > 1 else ()))


def _write_across(f: LLVMFunction, tile: Tile, vectors: list[str], place: str) -> None:
    """Write the sums of the lanes of vectors, as many as a power of two, to a place, side by side.

    Halves are added onto halves: of two vectors at a time as long as there are two, then of all that one vector holds.
    """
    t, lanes, size = tile.element, tile.lanes, tile.lanes
    while size > 1:
        half, together = size // 2, min(len(vectors), 2)
        starts = range(0, together * lanes, size)
        found: list[str] = []
        for pair in (vectors[i : i + together] for i in range(0, len(vectors), together)):
            operands = f"<{lanes} x {t}> {pair[0]}, <{lanes} x {t}> {pair[-1]}"
            low, high = (
                f.value(
                    f"shufflevector {operands}, {_lanes(at + i for at in starts for i in range(first, first + half))}"
                )
                for first in (0, half)
            )
            found.append(f.value(f"fadd <{together * lanes // 2} x {t}> {low}, {high}"))
        vectors, lanes, size = found, together * lanes // 2, half
    kind = t if tile.lanes == 1 else f"<{lanes} x {t}>"
    for i, vector in enumerate(vectors):
        f.do(f"store {kind} {vector}, ptr {f.offset(place, i * lanes, t)}, align {tile.size}")


def _lanes(numbers: Iterable[int]) -> str:
    """Return the mask of a shuffle."""
    listed = list(numbers)
    return f"<{len(listed)} x i32> <{', '.join(f'i32 {n}' for n in listed)}>"
