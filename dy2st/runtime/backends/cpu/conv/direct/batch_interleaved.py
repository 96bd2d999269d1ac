"""Convolution of several images that are too small to fill vectors: their elements are mixed, eight images at a time.

Planes (pack_planes.py) and results then have eight elements for each place, one an image: a line of a plane is eight
times as long, windows move by eight, and forward.py and winograd.py do with it as with other images.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.epilogue import call_finish, finish
from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import FIELDS
from dy2st.runtime.backends.cpu.conv.direct.forward import applies, direct, direct_scratch
from dy2st.runtime.backends.cpu.conv.direct.winograd import tiles_pay, tiles_row, winograd, winograd_scratch
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, most, negation, plus, rounded_up, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_MIXED = 8
"""How many images are mixed."""
_LEAST = 6
"""From so many images on, the results that nobody reads cost less than they save (measured)."""
_COST = 1000
"""Picoseconds that an element of a result takes to be brought to its place."""


def pays_to_interleave(f: LLVMFunction, tile: Tile, row: str = "%shape") -> str:
    """Write whether images are several and small, and mixed ones can be convolved by vectors of places."""
    extents = GroupExtents(f, tile, row)
    small, several = compare(f, "slt", extents.places, tile.lanes), compare(f, "sge", extents.images, _LEAST)
    return all_of(f, small, several, applies(f, tile, GroupExtents(f, tile, _mixed_row(f, row))))


def pays_to_interleave_tiles(f: LLVMFunction, tile: Tile, row: str = "%shape") -> str:
    """Write whether images are several and of few tiles, and those of mixed ones pay."""
    extents, mixed_ = GroupExtents(f, tile, row), _mixed_row(f, row)
    small = compare(f, "slt", GroupExtents(f, tile, tiles_row(f, row)).places, tile.lanes)
    several = compare(f, "sge", extents.images, _LEAST)
    return all_of(f, small, several, tiles_pay(f, tile, GroupExtents(f, tile, mixed_), tiles_row(f, mixed_)))


def batch_interleaved(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.mixed(x, w, c, shape, scratch)`, where `pays_to_interleave` or
    `pays_to_interleave_tiles` says so.
    """
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.mixed", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents, row = GroupExtents(f, tile), _mixed_row(f, "%shape")
    by_places, by_tiles, apart = direct(tile), winograd(tile), _take_apart(tile)
    behind = f.offset("%scratch", _result_bytes(f, tile, row))
    operands = ("ptr %x", "ptr %w", "ptr %scratch", f"ptr {row}", f"ptr {behind}")
    in_tiles = pays_to_interleave_tiles(f, tile)
    for way, condition in ((by_tiles, in_tiles), (by_places, negation(f, in_tiles))):
        with f.when(condition):
            f.call("void", f"@{way.name}", *operands)
    result = times(f, extents.group_result, extents.groups)
    arguments = (("ptr", "%c"), ("ptr", "%scratch"), ("i64", result))
    part = forked(f, apart.name, arguments, extents.images, times(f, result, _COST))
    single = GroupExtents(f, tile)
    call_finish(f, "0", times(f, single.images, single.shape["filters"]), single.places)
    f.ret()
    return Definition(f.name, f.text(), (by_places, by_tiles, apart, part, finish()))


def batch_interleaved_scratch(tile: Tile) -> Definition:
    """Return `i64 @dy2st.conv.f32.mixed.scratch(shape)`; nothing where images are not mixed."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.mixed.scratch", (("ptr", "%shape"),), "i64", linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    rooms = direct_scratch(tile), winograd_scratch(tile)
    for condition in (pays_to_interleave(f, tile), pays_to_interleave_tiles(f, tile)):
        with f.when(condition):
            row = _mixed_row(f, "%shape")
            inner = [f.call("i64", f"@{room.name}", f"ptr {row}") for room in rooms]
            f.ret("i64", plus(f, _result_bytes(f, tile, row), most(f, *inner)))
    f.ret("i64", "0")
    return Definition(f.name, f.text(), rooms)


def _result_bytes(f: LLVMFunction, tile: Tile, row: str) -> str:
    """Write the bytes of the mixed results."""
    extents = GroupExtents(f, tile, row)
    return rounded_up(f, times(f, extents.batch, extents.groups, extents.group_result, tile.size), 64)


def _mixed_row(f: LLVMFunction, row: str) -> str:
    """Write the shape row of the convolution of mixed images."""
    made = f.slot("i64", len(FIELDS))
    for at, name in enumerate(FIELDS):
        value = f.load("i64", f.offset(row, 8 * at))
        own = times(f, value, _MIXED) if name in ("out2", "mixed") else "0" if name == "after" else value
        f.store("i64", own, f.offset(made, 8 * at))
    return made


def _take_apart(tile: Tile) -> Definition:
    """Return the function that brings the results of some images to their places; each has %size elements."""
    t = tile.element
    parameters = (("ptr", "%c"), ("ptr", "%mixed"), ("i64", "%size"), *RANGE)
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.apart", parameters, linkage="internal", also="noinline nounwind")
    with f.loop("%to", start="%from") as b:
        turn = f.value(f"urem i64 {b}, {_MIXED}")
        first = plus(f, times(f, minus(f, b, turn), "%size"), turn)
        source, target = f.offset("%mixed", first, t), f.offset("%c", times(f, b, "%size"), t)
        with f.loop("%size") as i:
            f.store(t, f.load(t, f.offset(source, times(f, i, _MIXED), t)), f.offset(target, i, t))
    f.ret()
    return Definition(f.name, f.text())
