"""Images with their padding, cut by the stride into planes in which every window moves by 1.

The elements that meet one place of the kernel stand, for all places of the result, in one plane: place (y, x) of the
result finds them y rows and x elements behind where the tap's first one stands. So a convolution of any stride and
dilation reads memory as one of stride 1 does.
"""

from __future__ import annotations

from dy2st.runtime.cpu.conv.columns import Run, gather_run, valid_run
from dy2st.runtime.cpu.conv.extents import Extents
from dy2st.runtime.cpu.conv.shape import inside
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.micro import masked_memory
from dy2st.runtime.cpu.gemm.tile import Tile
from dy2st.runtime.cpu.integers import least, minus, plus, rounded_up, times
from dy2st.runtime.cpu.threads.fork import RANGE, forked

_COST = 400
"""Picoseconds an element takes to be laid out."""


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
        f, shape, at = self._f, self.extents.shape, self._f.slot("ptr")
        f.store("ptr", taps, at)
        with f.loop(self.extents.channels) as channel, f.loop(shape["kernel1"]) as i, f.loop(shape["kernel2"]) as j:
            reach = [times(f, n, shape[f"dilation{a}"]) for a, n in ((1, i), (2, j))]
            cut = [f.value(f"urem i64 {r}, {s}") for r, s in zip(reach, self.strides, strict=True)]
            step = [f.value(f"udiv i64 {r}, {s}") for r, s in zip(reach, self.strides, strict=True)]
            number = plus(f, times(f, cut[0], self.cuts[1]), cut[1])
            place = plus(f, times(f, channel, self.channel), times(f, number, self.plane))
            place = plus(f, place, times(f, step[0], self.width), step[1])
            here = f.load("ptr", at)
            f.store("i64", times(f, place, self._tile.size), here)
            f.store("ptr", f.offset(here, 8), at)


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
    """Return the function that fills the planes of some channels of the images, which are counted through."""
    f = Function(name, (*parameters, *RANGE), linkage="internal", also="noinline nounwind")
    extents = Extents(f, tile)
    planes, shape = Planes(f, tile, extents), extents.shape
    row = f.slot("ptr")
    f.store("ptr", f.offset("%planes", times(f, "%from", planes.channel), tile.element), row)
    stride = planes.strides[1]
    with f.loop("%to", start="%from") as number, f.loop(planes.cuts[0]) as first_y:
        b, channel = (f.value(f"{what} i64 {number}, {extents.channels}") for what in ("udiv", "urem"))
        lines = plus(f, times(f, b, "%step"), times(f, channel, shape["in1"], shape["in2"]))
        with f.loop(planes.cuts[1]) as first_x, f.loop(planes.height) as i:
            y = minus(f, plus(f, times(f, i, planes.strides[0]), first_y), shape["low1"])
            exists, start = inside(f, y, shape["in1"]), minus(f, first_x, shape["low2"])
            low, high = valid_run(f, start, planes.width, shape["in2"], stride)
            low, high = (f.value(f"select i1 {exists}, i64 {end}, i64 0") for end in (low, high))
            before = plus(f, lines, times(f, y, shape["in2"]))
            # not inbounds: a line that does not exist has no valid elements, but an address
            line = f.value(f"getelementptr {tile.element}, ptr %x, i64 {before}")
            here = f.load("ptr", row)
            gather_run(f, tile, Run(line, here, start, planes.width, low, high, stride), exact=True)
            f.store("ptr", f.offset(here, planes.width, tile.element), row)
    f.ret()
    return Definition(name, f.text(), masked_memory(tile) if tile.lanes > 1 else ())
