"""Convolution where each group has few filters (depthwise ones have one): a filter is run over its planes as one line.

The planes (padded_planes.py) of a group's channels stand in a thread's own room. What meets a place of the kernel lies,
for all places of the result, in one line, of which the padding between rows is computed too and not copied:

    line[i] = sum over taps of w[tap] plane[tap's first element + i]
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.epilogue import what_follows
from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents, copy_elements
from dy2st.runtime.backends.cpu.conv.direct.pack_planes import fill_channels
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.gemm.epilogue import finished
from dy2st.runtime.backends.cpu.gemm.microkernel import fmuladd, fused, masked_memory, spread
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, plus, rounded_up, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_MOST_FILTERS = 2
"""The filters of a group up to which planes are read for each one alone."""
_MOST_BYTES = 1 << 22
"""The bytes of a group's planes up to which each thread has room for them."""
TEAM = 8
"""How many threads there is room for."""
_VECTORS = (8, 4, 2)
"""How many vectors of a line are computed at once: the most, and the fewest that are enough for what is left."""
_COST, _ELEMENT_COST = 40, 200
"""Picoseconds that a place takes for a tap; and besides."""
_LINE = (("ptr", "%plane"), ("ptr", "%taps"), ("ptr", "%w"), ("ptr", "%line"), ("i64", "%count"), ("i64", "%depth"))


def is_depthwise(f: LLVMFunction, tile: Tile, extents: GroupExtents) -> str:
    """Write whether there are groups of few filters, over two axes at most, and planes are no larger than a cache."""
    shape = extents.shape
    flat = [compare(f, "eq", shape[name], 1) for name in ("in0", "kernel0", "out0")]
    some = [compare(f, "sgt", n, 0) for n in (shape["kernel1"], shape["kernel2"], extents.channels, extents.places)]
    few = compare(f, "sle", extents.filters, _MOST_FILTERS)
    near = compare(f, "sle", times(f, PaddedPlanes(f, tile, extents).image, tile.size), _MOST_BYTES)
    groups = compare(f, "sgt", extents.groups, 1)
    return all_of(f, *flat, compare(f, "eq", shape["low0"], 0), *some, few, groups, near)


class DepthwiseScratch:
    """The bytes of a thread's room: planes, and a line of results; both are read and written past their ends."""

    def __init__(self, f: LLVMFunction, tile: Tile, planes: PaddedPlanes):
        shape = planes.extents.shape
        self.count = plus(f, times(f, minus(f, shape["out1"], 1), planes.width), shape["out2"])
        """The elements of a line."""
        margin = _VECTORS[0] * tile.lanes
        self.planes = rounded_up(f, times(f, plus(f, planes.image, margin), tile.size), 64)
        self.bytes = plus(f, self.planes, rounded_up(f, times(f, plus(f, self.count, margin), tile.size), 64))


def depthwise_forward(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.alone(x, w, c, shape, scratch)`, where `is_depthwise` says so."""
    return in_rooms(tile, "alone", _groups(tile), (_COST, _ELEMENT_COST))


def in_rooms(
    tile: Tile, name: str, body: Definition, costs: tuple[int, int], images_together: bool = False
) -> Definition:
    """Return a function of `PARAMETERS` that runs a body over groups, each thread in a room of its own.

    A unit is a group of an image, or of all `images_together`; `costs` are picoseconds a place: for a tap, and besides.
    """
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.{name}", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents = GroupExtents(f, tile)
    planes = PaddedPlanes(f, tile, extents)
    planes.write_taps("%scratch")
    rooms = f.offset("%scratch", planes.taps_bytes)
    taps = times(f, extents.depth, extents.filters, costs[0])
    cost, units = times(f, extents.places, plus(f, taps, costs[1])), extents.groups
    if images_together:
        cost = times(f, cost, extents.images)
    else:
        units = times(f, units, extents.images)
    part = forked(f, body.name, (*PARAMETERS[:4], ("ptr", "%scratch"), ("ptr", rooms)), units, cost, TEAM)
    f.ret()
    return Definition(f.name, f.text(), (body, part))


def depthwise_scratch(tile: Tile) -> Definition:
    """Return `i64 @dy2st.conv.f32.alone.scratch(shape)`; nothing where it is not done so."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.alone.scratch", (("ptr", "%shape"),), "i64", linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    extents = GroupExtents(f, tile)
    with f.when(is_depthwise(f, tile, extents)):
        planes = PaddedPlanes(f, tile, extents)
        f.ret("i64", plus(f, planes.taps_bytes, times(f, DepthwiseScratch(f, tile, planes).bytes, TEAM)))
    f.ret("i64", "0")
    return Definition(f.name, f.text())


def _groups(tile: Tile) -> Definition:
    """Return the function that computes the results of some groups of the images, which are counted through."""
    parameters = (*PARAMETERS[:4], ("ptr", "%taps"), ("ptr", "%rooms"), *RANGE)
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.alone.groups", parameters, linkage="internal", also="noinline nounwind")
    fill, run, t = fill_channels(tile), _line(tile), tile.element
    extents = GroupExtents(f, tile)
    planes, across = PaddedPlanes(f, tile, extents), extents.shape["out2"]
    room = DepthwiseScratch(f, tile, planes)
    own = f.offset("%rooms", times(f, "%who", room.bytes))
    line = f.offset(own, room.planes)
    with f.loop("%to", start="%from") as number:
        group = f.value(f"urem i64 {number}, {extents.groups}")
        x = f.offset("%x", times(f, number, extents.image), t)
        f.call("void", f"@{fill.name}", f"ptr {x}", f"ptr {own}", "i64 0", "i64 1", "ptr %shape", "i64 0",
               f"i64 {extents.channels}", "i64 0")  # fmt: skip
        with f.loop(extents.filters) as n:
            w = f.offset("%w", times(f, plus(f, times(f, group, extents.filters), n), extents.depth), t)
            c = f.offset("%c", times(f, plus(f, times(f, number, extents.filters), n), extents.places), t)
            f.call("void", f"@{run.name}", f"ptr {own}", "ptr %taps", f"ptr {w}", f"ptr {line}", f"i64 {room.count}",
                   f"i64 {extents.depth}")  # fmt: skip
            with f.loop(extents.shape["out1"]) as y:
                here = f.offset(line, times(f, y, planes.width), t)
                copy_elements(f, tile, here, f.offset(c, times(f, y, across), t), across)
        channels = times(f, number, extents.filters), times(f, plus(f, number, 1), extents.filters)
        finished(f, channels, ("0", extents.places), what_follows(f), "0")
    f.ret()
    return Definition(f.name, f.text(), (fill, run, *(masked_memory(tile) if tile.lanes > 1 else ())))


def _line(tile: Tile) -> Definition:
    """Return the function that runs a filter over a line."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.alone.line", _LINE, linkage="internal", also="noinline nounwind")
    whole = f.value(f"udiv i64 %count, {_VECTORS[0] * tile.lanes}")
    whole = times(f, whole, _VECTORS[0] * tile.lanes)
    with f.loop(whole, step=_VECTORS[0] * tile.lanes) as i:
        _run(f, tile, i, _VECTORS[0])
    left = minus(f, "%count", whole)
    for vectors, fewer in zip(_VECTORS, (*_VECTORS[1:], 0), strict=True):
        above, below = (compare(f, what, left, n * tile.lanes) for what, n in (("sgt", fewer), ("sle", vectors)))
        with f.when(all_of(f, above, below)):
            _run(f, tile, whole, vectors)
    f.ret()
    return Definition(f.name, f.text(), (fmuladd(tile),))


def _run(f: LLVMFunction, tile: Tile, i: str, vectors: int) -> None:
    """Write the results of so many vectors from element i on."""
    t, v, lanes = tile.element, tile.vector, tile.lanes
    first = f.offset("%plane", i, t)
    sums = [f.slot(v) for _ in range(vectors)]
    for place in sums:
        f.store(v, "zeroinitializer", place)
    with f.loop("%depth") as p:
        tap = f.offset(first, f.load("i64", f.offset("%taps", p, "i64")))
        factor = spread(f, tile, f.load(t, f.offset("%w", p, t)))
        for j, place in enumerate(sums):
            element = f.value(f"load {v}, ptr {f.offset(tap, j * lanes, t)}, align {tile.size}")
            f.store(v, fused(f, tile, factor, element, f.load(v, place)), place)
    for j, place in enumerate(sums):
        there = f.offset("%line", plus(f, i, j * lanes), t)
        f.do(f"store {v} {f.load(v, place)}, ptr {there}, align {tile.size}")
