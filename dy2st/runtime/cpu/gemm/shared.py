"""Products panel by panel with the rows of A split between threads.

A part has whole kernels' rows from the first row on, and rows that are left over go with those before them, so that
each row is computed in the same way whoever does it.
"""

from __future__ import annotations

from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.panels import BLOCK_ROWS, PARAMETERS, panels
from dy2st.runtime.cpu.gemm.tile import Tile
from dy2st.runtime.cpu.integers import Integer, compare, minus, most, plus, times
from dy2st.runtime.cpu.threads.fork import RANGE, forked

_STEP_COST = 300
"""Picoseconds of one multiplication and addition of vectors."""


def shared_panels(tile: Tile) -> Definition:
    """Return the function that does what `panels` does, of any number of rows, on as many threads as are worth it."""
    body = _range(tile)
    f = Function(f"dy2st.gemm.{tile.dtype}.shared", PARAMETERS, linkage="internal", also="nounwind")
    units = most(f, f.value(f"sdiv i64 %m, {tile.rows}"), 1)
    part = forked(f, body.name, PARAMETERS, units, product_cost(f, tile, tile.rows, "%n", "%k"))
    f.ret()
    return Definition(f.name, f.text(), (body, part))


def product_cost(f: Function, tile: Tile, m: Integer, n: str, k: str) -> str:
    """Write how many picoseconds a product takes, roughly."""
    vectors = plus(f, f.value(f"sdiv i64 {n}, {tile.lanes}"), 1)
    return times(f, vectors, k, times(f, m, _STEP_COST))


def _range(tile: Tile) -> Definition:
    """Return the function that multiplies a range of the rows, in blocks that stay in cache."""
    by_panels = panels(tile)
    f = Function(f"dy2st.gemm.{tile.dtype}.range", (*PARAMETERS, *RANGE), linkage="internal", also="nounwind")
    all_rows = f.value(f"sdiv i64 %m, {tile.rows}")
    start, whole = times(f, "%from", tile.rows), times(f, "%to", tile.rows)
    last = compare(f, "sge", "%to", all_rows)
    stop = f.value(f"select i1 {last}, i64 %m, i64 {whole}")
    given = {register: f"{kind} {register}" for kind, register in PARAMETERS}
    with f.loop(most(f, minus(f, stop, tile.rows - 1), plus(f, start, 1)), BLOCK_ROWS, start) as i:
        left = minus(f, stop, i)
        more = compare(f, "sge", left, BLOCK_ROWS + tile.rows)
        given["%m"] = f"i64 {f.value(f'select i1 {more}, i64 {BLOCK_ROWS}, i64 {left}')}"
        given["%a"] = f"ptr {f.offset('%a', times(f, i, '%a_row'))}"
        given["%c"] = f"ptr {f.offset('%c', times(f, i, '%c_row'))}"
        f.call("void", f"@{by_panels.name}", *given.values())
    f.ret()
    return Definition(f.name, f.text(), (by_panels,))
