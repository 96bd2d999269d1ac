"""Products panel by panel with the rows of A, or where these are few the columns of B, split between threads.

A part has whole kernels' rows from the first row on, and rows that are left over go with those before them, so that
each row is computed in the same way whoever does it. The same holds for columns and whole panels. B is packed by
several threads too, panel by panel. Where something is to be done with the result (epilogue.py), it is finished in
parts that stay in cache: a block of rows, and as many columns as are packed at a time.
"""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.gemm.epilogue import AFTER, cost_after, finished, is_wanted
from dy2st.runtime.backends.cpu.gemm.packing import PARAMETERS as PACKING
from dy2st.runtime.backends.cpu.gemm.packing import packing
from dy2st.runtime.backends.cpu.gemm.panels import BLOCK_ROWS, WIDE, panels
from dy2st.runtime.backends.cpu.gemm.panels import PARAMETERS as PANELS
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import Integer, all_of, compare, minus, most, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

PARAMETERS = (*PANELS, *AFTER, ("i64", "%column"))
"""What `shared_panels` takes: `column` is the number of C's first column in the whole result."""
_STEP_COST = 300
"""Picoseconds of one multiplication and addition of vectors, and of reading one of B."""
_PACKED_BYTE = 40
"""Picoseconds to read a byte of B and write it where it is packed."""
_FEW = 4
"""Kernels' rows, of which fewer are not split."""


@functools.cache
def shared_panels(tile: Tile) -> Definition:
    """Return the function that does what `panels` does, of any number of rows, on as many threads as are worth it."""
    rows, columns = _range(tile), _columns(tile)
    f = LLVMFunction(f"dy2st.gemm.{tile.dtype}.shared", PARAMETERS, linkage="internal", also="nounwind")
    units = most(f, f.value(f"sdiv i64 %m, {tile.rows}"), 1)
    with f.when(compare(f, "slt", units, _FEW)):
        wide = _is_wide(f)
        panels_of_b = most(f, _whole(f, tile, wide, "%n"), 1)
        vectors = f.value(f"select i1 {wide}, i64 {WIDE}, i64 {tile.vectors}")
        cost = times(f, vectors, plus(f, times(f, "%k", plus(f, times(f, "%m", _STEP_COST), _STEP_COST)),
                                      times(f, "%m", tile.lanes, cost_after(f))))  # fmt: skip
        of_columns = forked(f, columns.name, PARAMETERS, panels_of_b, cost)
        f.ret()
    cost = plus(f, product_cost(f, tile, tile.rows, "%n", "%k"), times(f, "%n", tile.rows, cost_after(f)))
    of_rows = forked(f, rows.name, PARAMETERS, units, cost)
    f.ret()
    return Definition(f.name, f.text(), (rows, columns, of_rows, of_columns))


def product_cost(f: LLVMFunction, tile: Tile, m: Integer, n: str, k: str) -> str:
    """Write how many picoseconds a product takes, roughly."""
    vectors = plus(f, f.value(f"sdiv i64 {n}, {tile.lanes}"), 1)
    return times(f, vectors, k, times(f, m, _STEP_COST))


@functools.cache
def _range(tile: Tile) -> Definition:
    """Return the function that multiplies a range of the rows, in blocks that stay in cache."""
    by_panels = panels(tile)
    f = LLVMFunction(f"dy2st.gemm.{tile.dtype}.range", (*PARAMETERS, *RANGE), linkage="internal", also="nounwind")
    all_rows = f.value(f"sdiv i64 %m, {tile.rows}")
    start, whole = times(f, "%from", tile.rows), times(f, "%to", tile.rows)
    last = compare(f, "sge", "%to", all_rows)
    stop = f.value(f"select i1 {last}, i64 %m, i64 {whole}")
    width = f.value(f"select i1 {is_wanted(f)}, i64 {tile.width}, i64 %n")
    parts = most(f, f.value(f"select i1 {is_wanted(f)}, i64 {f.value(f'sdiv i64 %n, {tile.width}')}, i64 1"), 1)
    with f.loop(most(f, minus(f, stop, tile.rows - 1), plus(f, start, 1)), BLOCK_ROWS, start) as i:
        left = minus(f, stop, i)
        more = compare(f, "sge", left, BLOCK_ROWS + tile.rows)
        count = f.value(f"select i1 {more}, i64 {BLOCK_ROWS}, i64 {left}")
        with f.loop(parts, hint="part") as part:
            first = times(f, part, width)
            last = compare(f, "eq", part, minus(f, parts, 1))
            end = f.value(f"select i1 {last}, i64 %n, i64 {plus(f, first, width)}")
            _multiply(f, tile, by_panels, (i, count), (first, end))
    f.ret()
    return Definition(f.name, f.text(), (by_panels,))


def _multiply(
    f: LLVMFunction, tile: Tile, by_panels: Definition, rows: tuple[str, str], columns: tuple[str, str]
) -> None:
    """Write a part of the product: so many rows from the first one on, columns from a panel's first to the last."""
    (row, count), (first, end) = rows, columns
    given = {register: f"{kind} {register}" for kind, register in PANELS}
    before = f.value(f"select i1 %packed, i64 {times(f, first, '%k')}, i64 {first}")
    given["%m"] = f"i64 {count}"
    given["%n"] = f"i64 {minus(f, end, first)}"
    given["%a"] = f"ptr {f.offset('%a', times(f, row, '%a_row'))}"
    given["%b"] = f"ptr {f.offset('%b', times(f, before, tile.size))}"
    given["%c"] = f"ptr {f.offset('%c', plus(f, times(f, row, '%c_row'), times(f, first, tile.size)))}"
    f.call("void", f"@{by_panels.name}", *given.values())
    finished(f, (row, plus(f, row, count)), (plus(f, first, "%column"), plus(f, end, "%column")))


def _is_wide(f: LLVMFunction) -> str:
    """Write whether the columns that may be told apart are those of the kernel for one row, not those of a panel."""
    return all_of(f, compare(f, "eq", "%m", 1), negation(f, "%packed"))


def _whole(f: LLVMFunction, tile: Tile, wide: str, columns: str) -> str:
    """Write how many such groups there are in so many columns; dividing by what only the run knows takes long."""
    of_row, of_panel = (f.value(f"sdiv i64 {columns}, {n * tile.lanes}") for n in (WIDE, tile.vectors))
    return f.value(f"select i1 {wide}, i64 {of_row}, i64 {of_panel}")


def _between(f: LLVMFunction, width: Integer, whole: str) -> tuple[str, str]:
    """Write the first column and the end of a range of groups so wide; the last whole one has what is left over."""
    first = times(f, "%from", width)
    last = compare(f, "sge", "%to", whole)
    return first, f.value(f"select i1 {last}, i64 %n, i64 {times(f, '%to', width)}")


@functools.cache
def _columns(tile: Tile) -> Definition:
    """Return the function that multiplies all rows with a range of the columns."""
    by_panels = panels(tile)
    f = LLVMFunction(f"dy2st.gemm.{tile.dtype}.columns", (*PARAMETERS, *RANGE), linkage="internal", also="nounwind")
    wide = _is_wide(f)
    width = f.value(f"select i1 {wide}, i64 {WIDE * tile.lanes}, i64 {tile.vectors * tile.lanes}")
    _multiply(f, tile, by_panels, ("0", "%m"), _between(f, width, _whole(f, tile, wide, "%n")))
    f.ret()
    return Definition(f.name, f.text(), (by_panels,))


@functools.cache
def shared_packing(tile: Tile, transposed: bool) -> Definition:
    """Return the function that packs as `packing` does, on as many threads as are worth it."""
    body, width = _packed_panels(tile, transposed), tile.vectors * tile.lanes
    f = LLVMFunction(f"dy2st.gemm.{tile.dtype}.pack.{'nt'[transposed]}.shared", PACKING, linkage="internal",
                 also="nounwind")  # fmt: skip
    units = most(f, f.value(f"sdiv i64 %n, {width}"), 1)
    part = forked(f, body.name, PACKING, units, times(f, "%k", width * tile.size * _PACKED_BYTE))
    f.ret()
    return Definition(f.name, f.text(), (body, part))


@functools.cache
def _packed_panels(tile: Tile, transposed: bool) -> Definition:
    """Return the function that packs a range of the panels; the last one of B has what columns are left over."""
    pack, width = packing(tile, transposed), tile.vectors * tile.lanes
    f = LLVMFunction(f"{pack.name}.panels", (*PACKING, *RANGE), linkage="internal", also="nounwind")
    first, stop = _between(f, width, f.value(f"sdiv i64 %n, {width}"))
    column = "%b_row" if transposed else tile.size
    given = {register: f"{kind} {register}" for kind, register in PACKING}
    given["%b"] = f"ptr {f.offset('%b', times(f, first, column))}"
    given["%n"] = f"i64 {minus(f, stop, first)}"
    given["%out"] = f"ptr {f.offset('%out', times(f, first, '%k', tile.size))}"
    f.call("void", f"@{pack.name}", *given.values())
    f.ret()
    return Definition(f.name, f.text(), (pack,))
