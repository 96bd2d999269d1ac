"""The kernel in registers: a tile of C gains a row of A's elements times a row of B, k times.

Rows past the last are computed as copies of the last, from the same addresses, and stored over it: so the tile has no
case for fewer rows and touches nothing outside of the matrices. Only the last, narrower vector of columns is masked.
"""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, plus, rounded_down, times

PARAMETERS = (
    ("ptr", "%a"), ("i64", "%a_row"), ("i64", "%a_step"), ("ptr", "%b"), ("i64", "%b_step"), ("ptr", "%c"),
    ("i64", "%c_row"), ("i64", "%rows"), ("i64", "%columns"), ("i64", "%k"), ("i1", "%accumulate"),
)  # fmt: skip
"""Strides are in bytes; `columns` counts only where the kernel is masked."""
SCATTERED = tuple(("ptr", "%b_rows") if name == "%b_step" else (kind, name) for kind, name in PARAMETERS)
"""Where the rows of B stand anywhere: the bytes from `b` to each, as int64."""
_CHAINS = 4
"""So many sums must be under way that none waits for the one before it; a small tile adds in turns to several."""


@functools.cache
def micro_kernel(
    tile: Tile, rows: int, vectors: int, masked: bool, scattered: bool = False, inlined: bool = False
) -> Definition:
    """Return the kernel for a tile of `rows` by `vectors`; `masked`: one vector of which `columns` lanes exist."""
    width = f"masked{tile.lanes}" if masked else vectors
    name = f"dy2st.gemm.{tile.dtype}.{'scattered.' if scattered else ''}{rows}x{width}{'.inlined' * inlined}"
    also = f"{'always' if inlined else 'no'}inline nounwind"
    f = LLVMFunction(name, SCATTERED if scattered else PARAMETERS, linkage="internal", also=also)
    memory = _Memory(f, tile, masked)
    last = minus(f, "%rows", 1)
    a_rows, c_rows = ["%a"], ["%c"]
    for i in range(1, rows):
        below = compare(f, "slt", last, i)
        row = f.value(f"select i1 {below}, i64 {last}, i64 {i}")
        a_rows.append(f.offset("%a", times(f, row, "%a_row")))
        c_rows.append(f.offset("%c", times(f, row, "%c_row")))
    places = [(i, j) for i in range(rows) for j in range(vectors)]
    chains = 1 if scattered else -(-_CHAINS // len(places))
    sums = {(*place, chain): f.slot(tile.vector) for place in places for chain in range(chains)}
    for slot in sums.values():
        f.store(tile.vector, "zeroinitializer", slot)
    with f.when("%accumulate"):
        for i, j in places:
            f.store(tile.vector, memory.read(c_rows[i], j), sums[i, j, 0])
    b, a_offset = f.slot("ptr"), f.slot("i64")
    f.store("ptr", "%b", b)
    f.store("i64", "0", a_offset)

    def turn(p: str, chain: int) -> None:
        here, offset = f.load("ptr", b), f.load("i64", a_offset)
        if scattered:
            here = f.offset("%b", f.load("i64", f.offset("%b_rows", p, "i64")))
        row = [memory.read(here, j) for j in range(vectors)]
        for i in range(rows):
            factor = spread(f, tile, f.load(tile.element, f.offset(a_rows[i], offset)))
            for j in range(vectors):
                place = sums[i, j, chain]
                f.store(tile.vector, fused(f, tile, factor, row[j], f.load(tile.vector, place)), place)
        if not scattered:
            f.store("ptr", f.offset(here, "%b_step"), b)
        f.store("i64", plus(f, offset, "%a_step"), a_offset)

    whole = rounded_down(f, "%k", chains) if chains > 1 else "0"
    if chains > 1:
        with f.loop(whole, step=chains) as p:
            for chain in range(chains):
                turn(p, chain)
    with f.loop("%k", start=whole) as p:
        turn(p, 0)
    for i, j in places:
        for chain in range(1, chains):
            total = f.value(f"fadd {tile.vector} {f.load(tile.vector, sums[i, j, 0])}, "
                            f"{f.load(tile.vector, sums[i, j, chain])}")  # fmt: skip
            f.store(tile.vector, total, sums[i, j, 0])
    for i, j in places:
        memory.write(f.load(tile.vector, sums[i, j, 0]), c_rows[i], j)
    f.ret()
    return Definition(name, f.text(), memory.needs)


def spread(f: LLVMFunction, tile: Tile, scalar: str) -> str:
    """Write a number into all lanes."""
    if tile.lanes == 1:
        return scalar
    first = f.value(f"insertelement {tile.vector} poison, {tile.element} {scalar}, i32 0")
    return f.value(f"shufflevector {tile.vector} {first}, {tile.vector} poison, <{tile.lanes} x i32> zeroinitializer")


def fused(f: LLVMFunction, tile: Tile, x: str, y: str, z: str) -> str:
    """Write x y + z."""
    v = tile.vector
    return f.call(v, f"@llvm.fmuladd.{tile.suffix}", f"{v} {x}", f"{v} {y}", f"{v} {z}")


def fmuladd(tile: Tile) -> Definition:
    """Declare what `fused` calls."""
    name, v = f"llvm.fmuladd.{tile.suffix}", tile.vector
    return Definition(name, f"declare {v} @{name}({v}, {v}, {v})")


def lane_mask(f: LLVMFunction, lanes: int, count: str) -> str:
    """Write the mask of the lanes below `count`."""
    return _as_mask(f, lanes, _low_bits(f, lanes, count))


def span_mask(f: LLVMFunction, lanes: int, low: str, high: str) -> str:
    """Write the mask of the lanes from `low` on and below `high`."""
    outside = f.value(f"xor i64 {_low_bits(f, lanes, low)}, -1")
    return _as_mask(f, lanes, f.value(f"and i64 {outside}, {_low_bits(f, lanes, high)}"))


def _low_bits(f: LLVMFunction, lanes: int, count: str) -> str:
    """Write an integer whose first `count` bits are set, at most `lanes`."""
    bits = most(f, least(f, count, lanes), 0)
    return f.value(f"sub i64 {f.value(f'shl i64 1, {bits}')}, 1")


def _as_mask(f: LLVMFunction, lanes: int, bits: str) -> str:
    return f.value(f"bitcast i{lanes} {f.value(f'trunc i64 {bits} to i{lanes}')} to <{lanes} x i1>")


class _Memory:
    """Reads and writes of vectors, masked where the kernel is."""

    def __init__(self, f: LLVMFunction, tile: Tile, masked: bool):
        self._f, self._tile = f, tile
        self._mask = lane_mask(f, tile.lanes, "%columns") if masked else None
        self.needs = (fmuladd(tile), *(masked_memory(tile) if masked else ()))

    def read(self, address: str, j: int) -> str:
        tile, place = self._tile, self._f.offset(address, j * self._tile.lanes * self._tile.size)
        if self._mask is None:
            return self._f.value(f"load {tile.vector}, ptr {place}, align {tile.size}")
        return masked_load(self._f, tile, place, self._mask)

    def write(self, value: str, address: str, j: int) -> None:
        tile, place = self._tile, self._f.offset(address, j * self._tile.lanes * self._tile.size)
        if self._mask is None:
            self._f.do(f"store {tile.vector} {value}, ptr {place}, align {tile.size}")
        else:
            masked_store(self._f, tile, value, place, self._mask)


@functools.cache
def masked_memory(tile: Tile) -> tuple[Definition, Definition]:
    """Declare the masked load and store of a vector."""
    v, mask, suffix = tile.vector, f"<{tile.lanes} x i1>", tile.suffix
    load, store = f"llvm.masked.load.{suffix}.p0", f"llvm.masked.store.{suffix}.p0"
    return (
        Definition(load, f"declare {v} @{load}(ptr, i32 immarg, {mask}, {v})"),
        Definition(store, f"declare void @{store}({v}, ptr, i32 immarg, {mask})"),
    )


def masked_load(f: LLVMFunction, tile: Tile, address: str, mask: str) -> str:
    """Write a load of the lanes in the mask; 0 in the others."""
    v = tile.vector
    return f.call(
        v, f"@llvm.masked.load.{tile.suffix}.p0", f"ptr {address}", f"i32 {tile.size}", f"<{tile.lanes} x i1> {mask}",
        f"{v} zeroinitializer",
    )  # fmt: skip


def masked_store(f: LLVMFunction, tile: Tile, value: str, address: str, mask: str) -> None:
    """Write a store of the lanes in the mask."""
    f.call(
        "void", f"@llvm.masked.store.{tile.suffix}.p0", f"{tile.vector} {value}", f"ptr {address}", f"i32 {tile.size}",
        f"<{tile.lanes} x i1> {mask}",
    )  # fmt: skip
