"""The kernel for A times B transposed where both lie along k: dot products of a few rows of each, without packing.

As in micro.py, rows past the last are copies of the last.
"""

from __future__ import annotations

from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.micro import fmuladd, fused
from dy2st.runtime.cpu.gemm.tile import Tile

PARAMETERS = (
    ("ptr", "%a"), ("i64", "%a_row"), ("ptr", "%b"), ("i64", "%b_row"), ("ptr", "%c"), ("i64", "%c_row"),
    ("i64", "%c_column"), ("i64", "%m"), ("i64", "%n"), ("i64", "%k"), ("i1", "%accumulate"),
)  # fmt: skip
"""Strides are in bytes."""


def dot_product(tile: Tile) -> Definition:
    """Return the function that computes all of C by dot products, in blocks of `tile.dots`."""
    name = f"dy2st.gemm.{tile.dtype}.dot"
    f = Function(name, PARAMETERS, linkage="internal", also="noinline nounwind")
    rows, columns = tile.dots
    many, one = _kernel(tile, rows), _kernel(tile, 1)
    single = f.value("icmp eq i64 %m, 1")
    with f.loop("%n", step=columns) as j:
        b = f.offset("%b", f.value(f"mul i64 {j}, %b_row"))
        c = f.offset("%c", f.value(f"mul i64 {j}, %c_column"))
        n = f.value(f"sub i64 %n, {j}")
        shared = (f"ptr {b}", "i64 %b_row")
        rest = ("i64 %c_row", "i64 %c_column", "i64 %m", f"i64 {n}", "i64 %k", "i1 %accumulate")
        with f.when(single):
            f.call("void", f"@{one.name}", "ptr %a", "i64 %a_row", *shared, f"ptr {c}", *rest)
        with f.when(f.value(f"xor i1 {single}, true")), f.loop("%m", step=rows) as i:
            a = f.offset("%a", f.value(f"mul i64 {i}, %a_row"))
            c_here = f.offset(c, f.value(f"mul i64 {i}, %c_row"))
            m = f.value(f"sub i64 %m, {i}")
            f.call("void", f"@{many.name}", f"ptr {a}", "i64 %a_row", *shared, f"ptr {c_here}", *rest[:2],
                   f"i64 {m}", *rest[3:])  # fmt: skip
    f.ret()
    return Definition(name, f.text(), (many, one))


def _kernel(tile: Tile, rows: int) -> Definition:
    """Return the kernel for `rows` rows of A by `tile.dots[1]` rows of B."""
    columns = tile.dots[1]
    name = f"dy2st.gemm.{tile.dtype}.dot.{rows}x{columns}"
    f = Function(name, PARAMETERS, linkage="internal", also="noinline nounwind")
    a_rows, i_rows = _clamped(f, "%a", "%a_row", "%m", rows)
    b_rows, j_rows = _clamped(f, "%b", "%b_row", "%n", columns)
    places = [(i, j) for i in range(rows) for j in range(columns)]
    v, t = tile.vector, tile.element
    sums = {place: f.slot(v) for place in places}
    for place in places:
        f.store(v, "zeroinitializer", sums[place])
    whole = f.value(f"and i64 %k, {-tile.lanes}")
    with f.loop(whole, step=tile.lanes) as p:
        at = f.value(f"mul i64 {p}, {tile.size}")
        right = [f.value(f"load {v}, ptr {f.offset(b, at)}, align {tile.size}") for b in b_rows]
        for i, a in enumerate(a_rows):
            left = f.value(f"load {v}, ptr {f.offset(a, at)}, align {tile.size}")
            for j in range(columns):
                f.store(v, fused(f, tile, left, right[j], f.load(v, sums[i, j])), sums[i, j])
    totals = {place: f.slot(t) for place in places}
    for place in places:
        f.store(t, _across(f, tile, f.load(v, sums[place])), totals[place])
    with f.loop("%k", start=whole) as p:
        at = f.value(f"mul i64 {p}, {tile.size}")
        right = [f.load(t, f.offset(b, at)) for b in b_rows]
        for i, a in enumerate(a_rows):
            left = f.load(t, f.offset(a, at))
            for j in range(columns):
                product = f.value(f"fmul contract {t} {left}, {right[j]}")
                f.store(t, f.value(f"fadd contract {t} {f.load(t, totals[i, j])}, {product}"), totals[i, j])
    _written(f, tile, totals, i_rows, j_rows)
    f.ret()
    return Definition(name, f.text(), _needs(tile))


def _clamped(f: Function, base: str, stride: str, count: str, rows: int) -> tuple[list[str], list[str]]:
    """Write the addresses and numbers of the first rows, those past the last made the last."""
    last = f.value(f"sub i64 {count}, 1")
    addresses, numbers = [base], ["0"]
    for i in range(1, rows):
        below = f.value(f"icmp slt i64 {last}, {i}")
        numbers.append(f.value(f"select i1 {below}, i64 {last}, i64 {i}"))
        addresses.append(f.offset(base, f.value(f"mul i64 {numbers[-1]}, {stride}")))
    return addresses, numbers


def _written(f: Function, tile: Tile, totals: dict[tuple[int, int], str], rows: list[str], columns: list[str]) -> None:
    """Write the results to C, or add them to it."""
    t = tile.element
    row_offsets = [f.value(f"mul i64 {i}, %c_row") for i in rows]
    column_offsets = [f.value(f"mul i64 {j}, %c_column") for j in columns]
    places = {(i, j): f.offset(f.offset("%c", row_offsets[i]), column_offsets[j]) for i, j in totals}
    with f.when("%accumulate"):
        for at, total in totals.items():
            f.store(t, f.value(f"fadd {t} {f.load(t, places[at])}, {f.load(t, total)}"), total)
    for at, total in totals.items():
        f.store(t, f.load(t, total), places[at])


def _across(f: Function, tile: Tile, vector: str) -> str:
    """Write the sum of a vector's lanes, halves onto halves."""
    if tile.lanes == 1:
        return vector
    t, v = tile.element, tile.vector
    return f.call(f"reassoc {t}", f"@llvm.vector.reduce.fadd.{tile.suffix}", f"{t} -0.0", f"{v} {vector}")


def _needs(tile: Tile) -> tuple[Definition, ...]:
    if tile.lanes == 1:
        return (fmuladd(tile),)
    name = f"llvm.vector.reduce.fadd.{tile.suffix}"
    return fmuladd(tile), Definition(name, f"declare {tile.element} @{name}({tile.element}, {tile.vector})")
