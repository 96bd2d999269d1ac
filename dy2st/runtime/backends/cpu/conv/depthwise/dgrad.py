"""The gradient by the image where each group has few filters and windows move by more than 1.

What a tap gives to the planes of a group is added tap by tap, in a thread's own room; the planes are then brought to
the image, of which each element stands in one plane at most.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents, fill_zeros
from dy2st.runtime.backends.cpu.conv.common.im2col import valid_run
from dy2st.runtime.backends.cpu.conv.depthwise.forward import DepthwiseScratch, in_rooms
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.gemm.microkernel import (
    fmuladd,
    fused,
    lane_mask,
    masked_load,
    masked_memory,
    masked_store,
    spread,
)
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, plus, rounded_down, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE

_COST, _ELEMENT_COST = 100, 1000
"""Picoseconds that a place takes for a tap; and besides."""
_TAP = (("ptr", "%plane"), ("i64", "%width"), ("ptr", "%c"), ("i64", "%rows"), ("i64", "%count"))


def depthwise_dgrad(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.depthwise_dgrad(x, w, c, shape, scratch)`, which writes x."""
    return in_rooms(tile, "alone_images", _groups(tile), (_COST, _ELEMENT_COST))


def _groups(tile: Tile) -> Definition:
    """Return the function that writes some groups of the images, which are counted through."""
    parameters = (*PARAMETERS[:4], ("ptr", "%taps"), ("ptr", "%rooms"), *RANGE)
    name = f"dy2st.conv.{tile.dtype}.alone_images.groups"
    f = LLVMFunction(name, parameters, linkage="internal", also="noinline nounwind")
    add, t = _tap(tile), tile.element
    extents = GroupExtents(f, tile)
    planes, shape = PaddedPlanes(f, tile, extents), extents.shape
    own = f.offset("%rooms", times(f, "%who", DepthwiseScratch(f, tile, planes).bytes))
    with f.loop("%to", start="%from") as number:
        group = f.value(f"urem i64 {number}, {extents.groups}")
        fill_zeros(f, tile, own, planes.image)
        with f.loop(extents.filters) as n, f.loop(extents.depth) as p:
            w = plus(f, times(f, plus(f, times(f, group, extents.filters), n), extents.depth), p)
            c = f.offset("%c", times(f, plus(f, times(f, number, extents.filters), n), extents.places), t)
            plane = f.offset(own, f.load("i64", f.offset("%taps", p, "i64")))
            f.call("void", f"@{add.name}", f"ptr {plane}", f"i64 {planes.width}", f"ptr {c}", f"i64 {shape['out1']}",
                   f"i64 {shape['out2']}", f"{t} {f.load(t, f.offset('%w', w, t))}")  # fmt: skip
        x = f.offset("%x", times(f, number, extents.image), t)
        fill_zeros(f, tile, x, extents.image)
        _bring_to_image(f, tile, planes, own, x)
    f.ret()
    return Definition(name, f.text(), (add,))


def _tap(tile: Tile) -> Definition:
    """Return the function that adds lines of the cotangent, times a number, to lines of a plane."""
    t, v, lanes = tile.element, tile.vector, tile.lanes
    name = f"dy2st.conv.{tile.dtype}.alone_images.tap"
    f = LLVMFunction(name, (*_TAP, (t, "%factor")), linkage="internal", also="noinline nounwind")
    factor, whole = spread(f, tile, "%factor"), rounded_down(f, "%count", lanes)
    left = minus(f, "%count", whole)
    mask = lane_mask(f, lanes, left) if lanes > 1 else ""
    with f.loop("%rows") as y:
        c, plane = f.offset("%c", times(f, y, "%count"), t), f.offset("%plane", times(f, y, "%width"), t)
        with f.loop(whole, step=lanes) as i:
            there = f.offset(plane, i, t)
            element, so_far = (
                f.value(f"load {v}, ptr {place}, align {tile.size}") for place in (f.offset(c, i, t), there)
            )
            f.do(f"store {v} {fused(f, tile, factor, element, so_far)}, ptr {there}, align {tile.size}")
        if lanes > 1:
            with f.when(compare(f, "sgt", left, 0)):
                there = f.offset(plane, whole, t)
                element, so_far = (masked_load(f, tile, place, mask) for place in (f.offset(c, whole, t), there))
                masked_store(f, tile, fused(f, tile, factor, element, so_far), there, mask)
    f.ret()
    return Definition(name, f.text(), (fmuladd(tile), *(masked_memory(tile) if lanes > 1 else ())))


def _bring_to_image(f: LLVMFunction, tile: Tile, planes: PaddedPlanes, own: str, x: str) -> None:
    """Write the elements of the planes to their places in the image."""
    t, shape = tile.element, planes.extents.shape
    with (
        f.loop(planes.extents.channels) as channel,
        f.loop(planes.cuts[0]) as first_y,
        f.loop(planes.cuts[1]) as first_x,
    ):
        cut = plus(f, times(f, plus(f, times(f, channel, planes.cuts[0]), first_y), planes.cuts[1]), first_x)
        plane = f.offset(own, times(f, cut, planes.plane), t)
        top, start = (minus(f, first, shape[f"low{a}"]) for a, first in ((1, first_y), (2, first_x)))
        lines = valid_run(f, top, planes.height, shape["in1"], planes.strides[0])
        low, high = valid_run(f, start, planes.width, shape["in2"], planes.strides[1])
        with f.loop(lines[1], start=lines[0]) as n:
            y = plus(f, times(f, channel, shape["in1"]), top, times(f, n, planes.strides[0]))
            line, there = f.offset(plane, times(f, n, planes.width), t), times(f, y, shape["in2"])
            with f.loop(high, start=low) as i:
                place = plus(f, there, start, times(f, i, planes.strides[1]))
                f.store(t, f.load(t, f.offset(line, i, t)), f.offset(x, place, t))
