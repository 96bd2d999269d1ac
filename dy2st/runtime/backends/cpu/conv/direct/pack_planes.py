"""Packs images into planes (padded_planes.py): line after line, or eight images' lines by turns."""

from __future__ import annotations

from collections.abc import Callable

from dy2st.runtime.backends.cpu.conv.common.extents import GroupExtents
from dy2st.runtime.backends.cpu.conv.common.im2col import valid_run
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_memory, masked_store, span_mask
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, any_of, compare, minus, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_COST = 400
"""Picoseconds an element takes to be laid out, of which most is the way from the cache of another CPU."""


_PARAMETERS = (("ptr", "%x"), ("ptr", "%planes"), ("i64", "%step"), ("i64", "%left"), ("ptr", "%shape"))


def fill_planes(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.planes(x, planes, step, left, shape, images)`.

    Images are `step` elements apart, and from x on there are `left`; where they are mixed, so are `images`, in which
    those that miss are zeros.
    """
    lines, turns = fill_channels(tile), _fill_by_turns(tile)
    name = f"dy2st.conv.{tile.dtype}.planes"
    f = LLVMFunction(name, (*_PARAMETERS, ("i64", "%images")), linkage="internal", also="noinline nounwind")
    planes = PaddedPlanes(f, tile, GroupExtents(f, tile))
    units, cost = times(f, "%images", planes.extents.channels), times(f, planes.channel, _COST)
    alone, needs = compare(f, "eq", planes.mixed, 1), [lines, turns]
    for body, condition in ((lines, alone), (turns, negation(f, alone))):
        with f.when(condition):
            needs.append(forked(f, body.name, _PARAMETERS, units, cost))
    f.ret()
    return Definition(name, f.text(), tuple(needs))


def _fill_by_turns(tile: Tile) -> Definition:
    """Return the function that fills the planes of some channels of mixed images, which are counted through."""
    name, t = f"dy2st.conv.{tile.dtype}.planes.mixed", tile.element
    f = LLVMFunction(name, (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    planes = PaddedPlanes(f, tile, GroupExtents(f, tile))
    stride, mixed, extent = planes.strides[1], planes.mixed, planes.extents.shape["in2"]
    width = f.value(f"udiv i64 {planes.width}, {mixed}")
    with f.loop(planes.cuts[1]) as first_x, f.loop(mixed) as i:
        start = minus(f, first_x, planes.extents.shape["low2"])
        inner = valid_run(f, start, width, extent, stride)

        def fill(line: str | None, there: str) -> None:
            low, high = ("0", "0") if line is None else inner
            for first, end in (("0", low), (low, high), (high, width)):
                if first == end:
                    continue
                with f.loop(end, start=first) as x:
                    value = "0.0"
                    if end == high and line is not None:
                        at = plus(f, start, times(f, x, stride))
                        value = f.load(t, f.value(f"getelementptr {t}, ptr {line}, i64 {at}"))
                    f.store(t, value, f.offset(there, times(f, x, mixed), t))

        _each_line(f, tile, planes, (first_x, i), fill, i)
    f.ret()
    return Definition(name, f.text())


def fill_channels(tile: Tile) -> Definition:
    """Return the function that fills the planes of some channels of the images, which are counted through.

    What is inside of a line is the same for all lines of a plane, so a column of vectors is written at a time.
    """
    name = f"dy2st.conv.{tile.dtype}.planes.channels"
    f = LLVMFunction(name, (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    planes = PaddedPlanes(f, tile, GroupExtents(f, tile))
    stride, extent = planes.strides[1], planes.extents.shape["in2"]
    dense, halved = compare(f, "eq", stride, 1), compare(f, "eq", stride, 2)
    with f.loop(planes.cuts[1]) as first_x:
        start = minus(f, first_x, planes.extents.shape["low2"])
        low, high = valid_run(f, start, planes.width, extent, stride)
        with f.when(negation(f, any_of(f, dense, halved)) if tile.lanes > 1 else "true"):
            with f.loop(planes.width) as i:
                _fill_elements(f, tile, planes, first_x, (i, plus(f, start, times(f, i, stride)), low, high))
        for condition, step in ((dense, 1), (halved, 2)) if tile.lanes > 1 else ():
            with f.when(condition), f.loop(planes.width, step=tile.lanes) as i:
                _fill_vectors(f, tile, planes, first_x, (i, plus(f, start, times(f, i, step)), low, high), step)
    f.ret()
    return Definition(name, f.text(), masked_memory(tile) if tile.lanes > 1 else ())


_Column = tuple[str, str, str, str]
"""The place in a plane's lines, that in the image's, and from where to where lines of the plane are inside of those."""


def _fill_elements(f: LLVMFunction, tile: Tile, planes: PaddedPlanes, first_x: str, column: _Column) -> None:
    """Write one column, element by element."""
    t, (i, place, low, high) = tile.element, column
    inside = all_of(f, compare(f, "sge", i, low), compare(f, "slt", i, high))
    value = f.slot(t)

    def fill(line: str | None, there: str) -> None:
        f.store(t, "0.0", value)
        if line is not None:
            with f.when(inside):
                f.store(t, f.load(t, f.value(f"getelementptr {t}, ptr {line}, i64 {place}")), value)
        f.store(t, f.load(t, value), there)

    _each_line(f, tile, planes, (first_x, i), fill)


def _fill_vectors(f: LLVMFunction, tile: Tile, planes: PaddedPlanes, first_x: str, column: _Column, step: int) -> None:
    """Write a column of vectors, of whose elements the image's are so many apart."""
    t, v, lanes, (i, place, low, high) = tile.element, tile.vector, tile.lanes, column
    exists = lane_mask(f, lanes, minus(f, planes.width, i))
    first, last = (times(f, minus(f, end, i), step) for end in (low, high))
    last = minus(f, last, step - 1)
    masks = [span_mask(f, lanes, *(minus(f, end, part * lanes) for end in (first, last))) for part in range(step)]
    evens = ", ".join(f"i32 {2 * lane}" for lane in range(lanes))

    def fill(line: str | None, there: str) -> None:
        made = "zeroinitializer"
        if line is not None:
            here = f.value(f"getelementptr {t}, ptr {line}, i64 {place}")
            parts = [
                masked_load(f, tile, f.value(f"getelementptr {t}, ptr {here}, i64 {part * lanes}"), mask)
                for part, mask in enumerate(masks)
            ]
            made = parts[0]
            if step == 2:
                made = f.value(f"shufflevector {v} {parts[0]}, {v} {parts[1]}, <{lanes} x i32> <{evens}>")
        masked_store(f, tile, made, there, exists)

    _each_line(f, tile, planes, (first_x, i), fill)


def _each_line(
    f: LLVMFunction, tile: Tile, planes: PaddedPlanes, place: tuple[str, str], fill: Callable[[str | None, str], None],
    turn: str = "0",
) -> None:  # fmt: skip
    """Write loops over lines of planes, each with the image's line (None where that is outside) and its place.

    `turn` says which of mixed images is meant; one that misses has no lines.
    """
    shape, (first_x, i) = planes.extents.shape, place
    with f.loop("%to", start="%from") as number, f.loop(planes.cuts[0]) as first_y:
        b, channel = (f.value(f"{what} i64 {number}, {planes.extents.channels}") for what in ("udiv", "urem"))
        b = plus(f, times(f, b, planes.mixed), turn)
        image = plus(f, times(f, b, "%step"), times(f, channel, shape["in1"], shape["in2"]))
        cut = plus(f, times(f, plus(f, times(f, number, planes.cuts[0]), first_y), planes.cuts[1]), first_x)
        plane = f.offset("%planes", plus(f, times(f, cut, planes.plane), i), tile.element)
        start = minus(f, first_y, shape["low1"])
        low, high = valid_run(f, start, planes.height, shape["in1"], planes.strides[0])
        high = f.value(f"select i1 {compare(f, 'slt', b, '%left')}, i64 {high}, i64 {low}")
        for first, end in (("0", low), (low, high), (high, planes.height)):
            with f.loop(end, start=first) as n:
                there = f.offset(plane, times(f, n, planes.width), tile.element)
                if end != high:
                    fill(None, there)
                    continue
                y = plus(f, start, times(f, n, planes.strides[0]))
                fill(f.offset("%x", plus(f, image, times(f, y, shape["in2"])), tile.element), there)
