"""B laid out panel by panel, as panels.py reads it: from rows of columns, or from rows along k (transposed)."""

from __future__ import annotations

import functools

from dy2st.records import replace
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_memory
from dy2st.runtime.backends.cpu.gemm.panels import panel_loop
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, negation, plus, times

PARAMETERS = (("ptr", "%b"), ("i64", "%b_row"), ("i64", "%n"), ("i64", "%k"), ("ptr", "%out"))
"""Of a function that packs; `b_row` is in bytes."""


def packing(tile: Tile, transposed: bool) -> Definition:
    """Return the function that packs %k rows (columns, where transposed) of %n elements."""
    return _packing_columns(tile) if transposed else _packing_rows(tile)


@functools.cache
def _packing_rows(tile: Tile) -> Definition:
    name = f"dy2st.gemm.{tile.dtype}.pack.n"
    f = LLVMFunction(name, PARAMETERS, linkage="internal", also="noinline nounwind")
    v, size, width = tile.vector, tile.size, tile.lanes * tile.size
    with panel_loop(f, tile) as (j, vectors, left):
        source = f.offset("%b", times(f, j, size))
        out = f.offset("%out", times(f, times(f, j, "%k"), size))
        row_bytes = times(f, vectors, width)
        mask = lane_mask(f, tile.lanes, left) if tile.lanes > 1 else ""
        narrow = compare(f, "slt", left, tile.lanes)
        with f.when(narrow) if mask else f.when("false"), f.loop("%k") as p:
            here = f.offset(source, times(f, p, "%b_row"))
            row = masked_load(f, tile, here, mask) if mask else "zeroinitializer"
            f.do(f"store {v} {row}, ptr {f.offset(out, times(f, p, width))}, align {size}")
        with f.when(negation(f, narrow)), f.loop("%k") as p:
            here = f.offset(source, times(f, p, "%b_row"))
            there = f.offset(out, times(f, p, row_bytes))
            with f.loop(row_bytes, step=width) as at:
                row = f.value(f"load {v}, ptr {f.offset(here, at)}, align {size}")
                f.do(f"store {v} {row}, ptr {f.offset(there, at)}, align {size}")
    f.ret()
    return Definition(name, f.text(), masked_memory(tile) if tile.lanes > 1 else ())


@functools.cache
def _packing_columns(tile: Tile) -> Definition:
    """Square blocks are transposed in registers, the last one along k over again what it overlaps.

    Columns past the last are copies of the last; their results are never stored. A block is 8 wide at most: a larger
    one would save few instructions and cost much time to compile.
    """
    name = f"dy2st.gemm.{tile.dtype}.pack.t"
    f = LLVMFunction(name, PARAMETERS, linkage="internal", also="noinline nounwind")
    square = replace(tile, lanes=min(tile.lanes, 8))
    v, size, side = square.vector, tile.size, square.lanes
    last = minus(f, "%n", 1)
    last_block = minus(f, "%k", side)
    short = compare(f, "slt", "%k", side)
    with panel_loop(f, tile) as (j, vectors, _):
        out = f.offset("%out", times(f, times(f, j, "%k"), size))
        width = times(f, vectors, tile.lanes)
        row_bytes = times(f, width, size)
        with f.when(short):
            _one_by_one(f, tile, out, (j, width, last), row_bytes)
        with f.when(negation(f, short)), f.loop(width, step=side) as block:
            first = plus(f, j, block)
            there = f.offset(out, block, tile.element)
            columns = [_column(f, plus(f, first, i), last) for i in range(side)]
            with f.loop("%k", step=side) as turn:
                past = compare(f, "sgt", turn, last_block)
                p = f.value(f"select i1 {past}, i64 {last_block}, i64 {turn}")
                at = times(f, p, size)
                block_rows = [f.value(f"load {v}, ptr {f.offset(c, at)}, align {size}") for c in columns]
                place = f.slot("ptr")
                f.store("ptr", f.offset(there, times(f, p, row_bytes)), place)
                for row in transposed(f, square, block_rows):
                    here = f.load("ptr", place)
                    f.do(f"store {v} {row}, ptr {here}, align {size}")
                    f.store("ptr", f.offset(here, row_bytes), place)
    f.ret()
    return Definition(name, f.text())


def _column(f: LLVMFunction, j: str, last: str) -> str:
    """Write the address of column j, those past the last made the last."""
    past = compare(f, "sgt", j, last)
    return f.offset("%b", f.value(f"mul i64 {f.value(f'select i1 {past}, i64 {last}, i64 {j}')}, %b_row"))


def _one_by_one(f: LLVMFunction, tile: Tile, out: str, columns: tuple[str, str, str], row_bytes: str) -> None:
    """Write the loops that pack fewer rows than a block has; `columns`: the first, how many, and the last there is."""
    t, (first, count, last) = tile.element, columns
    with f.loop(count) as j:
        column = _column(f, plus(f, first, j), last)
        there = f.offset(out, j, t)
        with f.loop("%k") as p:
            f.store(t, f.load(t, f.offset(column, p, t)), f.offset(there, times(f, p, row_bytes)))


def transposed(f: LLVMFunction, tile: Tile, rows: list[str]) -> list[str]:
    """Write the transpose of a square block of vectors: at each of log2(lanes) steps, halves change places."""
    lanes, half = tile.lanes, 1
    while half < lanes:
        following = list(rows)
        low = [i if not i & half else i - half + lanes for i in range(lanes)]
        high = [i + half if not i & half else i + lanes for i in range(lanes)]
        for i in range(lanes):
            if not i & half:
                following[i] = _shuffled(f, tile, rows[i], rows[i + half], low)
                following[i + half] = _shuffled(f, tile, rows[i], rows[i + half], high)
        rows, half = following, half * 2
    return rows


def _shuffled(f: LLVMFunction, tile: Tile, x: str, y: str, places: list[int]) -> str:
    listed = ", ".join(f"i32 {i}" for i in places)
    return f.value(f"shufflevector {tile.vector} {x}, {tile.vector} {y}, <{tile.lanes} x i32> <{listed}>")
