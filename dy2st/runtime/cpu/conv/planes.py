"""Images with their padding, cut by the stride into planes in which every window moves by 1.

The elements that meet one place of the kernel stand, for all places of the result, in one plane: place (y, x) of the
result finds them y rows and x elements behind where the tap's first one stands. So a convolution of any stride and
dilation reads memory as one of stride 1 does.
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.runtime.cpu.conv.columns import valid_run
from dy2st.runtime.cpu.conv.extents import Extents
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.micro import lane_mask, masked_load, masked_memory, masked_store, span_mask
from dy2st.runtime.cpu.gemm.tile import Tile
from dy2st.runtime.cpu.integers import all_of, any_of, compare, least, minus, negation, plus, rounded_up, times
from dy2st.runtime.cpu.threads.fork import RANGE, forked

_COST = 400
"""Picoseconds an element takes to be laid out, of which most is the way from the cache of another CPU."""


class Planes:
    """The extents of the planes of one group of one image, of two axes."""

    def __init__(self, f: Function, tile: Tile, extents: Extents):
        self._f, self._tile, self.extents = f, tile, extents
        shape = extents.shape
        reaches = [times(f, minus(f, shape[f"kernel{a}"], 1), shape[f"dilation{a}"]) for a in (1, 2)]
        self.strides = [shape[f"stride{a}"] for a in (1, 2)]
        self.cuts = [least(f, s, plus(f, r, 1)) for s, r in zip(self.strides, reaches, strict=True)]
        """How many planes there are along each axis: what no window meets is left out."""
        self.height, self.width = (
            plus(f, shape[f"out{a}"], f.value(f"udiv i64 {r}, {s}"))
            for a, r, s in zip((1, 2), reaches, self.strides, strict=True)
        )
        self.plane = times(f, self.height, self.width)
        self.channel = times(f, self.plane, *self.cuts)
        self.image = times(f, self.channel, extents.channels)
        self.taps_bytes = rounded_up(f, times(f, extents.depth, 8), 64)

    def write_taps(self, taps: str) -> None:
        """Write for each channel and place of the kernel how many bytes from the planes' start its elements begin."""
        f, shape = self._f, self.extents.shape
        count = times(f, shape["kernel1"], shape["kernel2"])
        with f.loop(shape["kernel1"]) as i, f.loop(shape["kernel2"]) as j:
            reach = [times(f, n, shape[f"dilation{a}"]) for a, n in ((1, i), (2, j))]
            cut = [f.value(f"urem i64 {r}, {s}") for r, s in zip(reach, self.strides, strict=True)]
            step = [f.value(f"udiv i64 {r}, {s}") for r, s in zip(reach, self.strides, strict=True)]
            number = plus(f, times(f, cut[0], self.cuts[1]), cut[1])
            place = plus(f, times(f, number, self.plane), times(f, step[0], self.width), step[1])
            here = f.offset(taps, plus(f, times(f, i, shape["kernel2"]), j), "i64")
            f.store("i64", times(f, place, self._tile.size), here)
        apart = times(f, self.channel, self._tile.size)
        with f.loop(minus(f, self.extents.depth, count)) as n:
            before, after = f.offset(taps, n, "i64"), f.offset(taps, plus(f, n, count), "i64")
            f.store("i64", plus(f, f.load("i64", before), apart), after)


def fill_planes(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.planes(x, planes, images, step, shape)`; images are `step` elements apart."""
    name = f"dy2st.conv.{tile.dtype}.planes"
    parameters = (("ptr", "%x"), ("ptr", "%planes"), ("i64", "%step"), ("ptr", "%shape"))
    body = _fill_channels(tile, f"{name}.channels", parameters)
    f = Function(name, (*parameters, ("i64", "%images")), linkage="internal", also="noinline nounwind")
    planes = Planes(f, tile, Extents(f, tile))
    part = forked(
        f, body.name, parameters, times(f, "%images", planes.extents.channels), times(f, planes.channel, _COST)
    )
    f.ret()
    return Definition(name, f.text(), (body, part))


def _fill_channels(tile: Tile, name: str, parameters: tuple[tuple[str, str], ...]) -> Definition:
    """Return the function that fills the planes of some channels of the images, which are counted through.

    What is inside of a line is the same for all lines of a plane, so a column of vectors is written at a time.
    """
    f = Function(name, (*parameters, *RANGE), linkage="internal", also="noinline nounwind")
    planes = Planes(f, tile, Extents(f, tile))
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


def _fill_elements(f: Function, tile: Tile, planes: Planes, first_x: str, column: _Column) -> None:
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


def _fill_vectors(f: Function, tile: Tile, planes: Planes, first_x: str, column: _Column, step: int) -> None:
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
    f: Function, tile: Tile, planes: Planes, place: tuple[str, str], fill: Callable[[str | None, str], None]
) -> None:
    """Write loops over lines of planes, each with the image's line (None where that is outside) and its place."""
    shape, (first_x, i) = planes.extents.shape, place
    with f.loop("%to", start="%from") as number, f.loop(planes.cuts[0]) as first_y:
        b, channel = (f.value(f"{what} i64 {number}, {planes.extents.channels}") for what in ("udiv", "urem"))
        image = plus(f, times(f, b, "%step"), times(f, channel, shape["in1"], shape["in2"]))
        cut = plus(f, times(f, plus(f, times(f, number, planes.cuts[0]), first_y), planes.cuts[1]), first_x)
        plane = f.offset("%planes", plus(f, times(f, cut, planes.plane), i), tile.element)
        start = minus(f, first_y, shape["low1"])
        low, high = valid_run(f, start, planes.height, shape["in1"], planes.strides[0])
        for first, end in (("0", low), (low, high), (high, planes.height)):
            with f.loop(end, start=first) as n:
                there = f.offset(plane, times(f, n, planes.width), tile.element)
                if end != high:
                    fill(None, there)
                    continue
                y = plus(f, start, times(f, n, planes.strides[0]))
                fill(f.offset("%x", plus(f, image, times(f, y, shape["in2"])), tile.element), there)
