"""Rows of integers become numbers, and lie panel by panel, as panels.py reads them (packing.py, transposed).

Of 4 bits a byte has two rows: the low half that of an even number, the high half the one behind it.
"""

from __future__ import annotations

import functools

from dy2st.records import replace
from dy2st.runtime.backends.cpu.gemm.microkernel import spread
from dy2st.runtime.backends.cpu.gemm.packing import transposed
from dy2st.runtime.backends.cpu.gemm.panels import panel_loop
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_PARAMETERS = (
    ("ptr", "%w"), ("ptr", "%scale"), ("i64", "%n"), ("i64", "%k"), ("ptr", "%out"), ("i64", "%w_row"),
    ("i64", "%group"), ("i64", "%columns"), ("i64", "%first"),
)  # fmt: skip
"""`n` columns of `k` elements from `w` on, the first one element `first` of its row, which has `w_row` bytes."""
_PACKED_BYTE = 40
"""Picoseconds to read an element and write a byte of it where it is packed."""


def _integers(t: Tile, kind: str) -> str:
    return kind if t.lanes == 1 else f"<{t.lanes} x {kind}>"


def masked_bytes(t: Tile) -> Definition:
    """Declare the masked load of as many bytes as a vector has elements."""
    v, mask = _integers(t, "i8"), _integers(t, "i1")
    name = f"llvm.masked.load.v{t.lanes}i8.p0"
    return Definition(name, f"declare {v} @{name}(ptr, i32 immarg, {mask}, {v})")


def read_numbers(f: LLVMFunction, t: Tile, address: str, mask: str | None = None) -> str:
    """Write a load of bytes, those of a mask alone, as a vector of i32."""
    v = _integers(t, "i8")
    if mask is None:
        read = f.value(f"load {v}, ptr {address}, align 1")
    else:
        read = f.call(v, f"@llvm.masked.load.v{t.lanes}i8.p0", f"ptr {address}", "i32 1",
                      f"{_integers(t, 'i1')} {mask}", f"{v} zeroinitializer")  # fmt: skip
    return f.value(f"sext {v} {read} to {_integers(t, 'i32')}")


def halves(f: LLVMFunction, t: Tile, read: str, bits: int) -> list[str]:
    """Write the numbers of elements that `read_numbers` read: of one row, or of two."""
    v = _integers(t, "i32")
    if bits == 8:
        return [f.value(f"sitofp {v} {read} to {t.vector}")]
    high, four = (str(n) if t.lanes == 1 else f"splat (i32 {n})" for n in (28, 4))
    low = f.value(f"ashr {v} {f.value(f'shl {v} {read}, {high}')}, {high}")
    return [f.value(f"sitofp {v} {half} to {t.vector}") for half in (low, f.value(f"ashr {v} {read}, {four}"))]


@functools.cache
def shared_packing(t: Tile, bits: int) -> Definition:
    """Return the function that packs columns on as many threads as are worth it."""
    body, width = _panels(t, bits), t.vectors * t.lanes
    f = LLVMFunction(f"dy2st.gemm.{t.dtype}.quantized{bits}.pack", _PARAMETERS, linkage="internal", also="nounwind")
    units = most(f, f.value(f"sdiv i64 %n, {width}"), 1)
    part = forked(f, body.name, _PARAMETERS, units, times(f, "%k", width * t.size * _PACKED_BYTE))
    f.ret()
    return Definition(f.name, f.text(), (body, part))


@functools.cache
def _panels(t: Tile, bits: int) -> Definition:
    """Return the function that packs a range of the panels; the last one has what columns are left over."""
    pack, width = _packing(t, bits), t.vectors * t.lanes
    f = LLVMFunction(f"{pack.name}.panels", (*_PARAMETERS, *RANGE), linkage="internal", also="nounwind")
    first = times(f, "%from", width)
    last = compare(f, "sge", "%to", f.value(f"sdiv i64 %n, {width}"))
    stop = f.value(f"select i1 {last}, i64 %n, i64 {times(f, '%to', width)}")
    row = first if bits == 8 else f.value(f"lshr i64 {first}, 1")
    given = {register: f"{kind} {register}" for kind, register in _PARAMETERS}
    given["%w"] = f"ptr {f.offset('%w', times(f, row, '%w_row'))}"
    given["%scale"] = f"ptr {f.offset('%scale', times(f, first, t.size))}"
    given["%n"] = f"i64 {minus(f, stop, first)}"
    given["%out"] = f"ptr {f.offset('%out', times(f, first, '%k', t.size))}"
    f.call("void", f"@{pack.name}", *given.values())
    f.ret()
    return Definition(f.name, f.text(), (pack,))


@functools.cache
def _packing(t: Tile, bits: int) -> Definition:
    """Return the function that packs: square blocks are transposed in registers, as those of numbers are.

    A group has whole blocks. Where there are none, the last block along k does over again what it overlaps.
    """
    f = LLVMFunction(f"dy2st.gemm.{t.dtype}.quantized{bits}.packed", _PARAMETERS, linkage="internal",
                     also="noinline nounwind")  # fmt: skip
    square = replace(t, lanes=min(t.lanes, 8))
    v, side = square.vector, square.lanes
    last = minus(f, "%n", 1)
    last_block = minus(f, "%k", side)
    short = compare(f, "slt", "%k", side)
    with panel_loop(f, t) as (j, vectors, _):
        out = f.offset("%out", times(f, times(f, j, "%k"), t.size))
        width = times(f, vectors, t.lanes)
        row_bytes = times(f, width, t.size)
        with f.when(short):
            _one_by_one(f, t, bits, out, (j, width, last), row_bytes)
        with f.when(negation(f, short)), f.loop(width, step=side) as block:
            columns = [least(f, plus(f, j, block, i), last) for i in range(side)]
            rows = [_row(f, column, bits) for column in columns[:: 8 // bits]]
            there = f.offset(out, block, t.element)
            with f.loop("%k", step=side) as turn:
                p = least(f, turn, last_block)
                scales = _scales(f, t, p)
                found = [
                    half for row in rows for half in halves(f, square, read_numbers(f, square, f.offset(row, p)), bits)
                ]
                factors = [spread(f, square, f.load(t.element, f.offset(scales, c, t.element))) for c in columns]
                block_rows = [f.value(f"fmul {v} {x}, {s}") for x, s in zip(found, factors, strict=True)]
                for i, row in enumerate(transposed(f, square, block_rows)):
                    place = f.offset(there, times(f, plus(f, p, i), row_bytes))
                    f.do(f"store {v} {row}, ptr {place}, align {t.size}")
    f.ret()
    return Definition(f.name, f.text())


def _row(f: LLVMFunction, column: str, bits: int) -> str:
    """Write the address of the bytes of a column."""
    return f.offset("%w", times(f, column if bits == 8 else f.value(f"lshr i64 {column}, 1"), "%w_row"))


def _scales(f: LLVMFunction, t: Tile, p: str) -> str:
    """Write where the scales of element p of all columns are."""
    group = f.value(f"udiv i64 {plus(f, p, '%first')}, %group")
    return f.offset("%scale", times(f, group, "%columns", t.size))


def _one_by_one(
    f: LLVMFunction, t: Tile, bits: int, out: str, columns: tuple[str, str, str], row_bytes: str
) -> None:  # fmt: skip
    """Write the loops that pack fewer elements than a block has; `columns`: the first, how many, the last there is."""
    one, (first, count, last) = replace(t, lanes=1), columns
    with f.loop(count) as j:
        column = least(f, plus(f, first, j), last)
        row, there = _row(f, column, bits), f.offset(out, j, t.element)
        with f.loop("%k") as p:
            numbers = halves(f, one, read_numbers(f, one, f.offset(row, p)), bits)
            number = numbers[0]
            if bits == 4:
                odd = f.value(f"trunc i64 {column} to i1")
                number = f.value(f"select i1 {odd}, {t.element} {numbers[1]}, {t.element} {numbers[0]}")
            scale = f.load(t.element, f.offset(_scales(f, t, p), column, t.element))
            made = f.value(f"fmul {t.element} {number}, {scale}")
            f.store(t.element, made, f.offset(there, times(f, p, row_bytes)))
