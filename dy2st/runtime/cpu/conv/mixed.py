"""Convolution of several images that are too small to fill vectors: their elements are mixed, eight images at a time.

Where windows move by 1 along a row, a row of which each place has eight elements, one an image, is convolved as a row
eight times as long by a kernel whose places are eight times as far apart: direct.py does that.
"""

from __future__ import annotations

from dy2st.runtime.cpu.conv.direct import applies, direct, direct_scratch
from dy2st.runtime.cpu.conv.extents import PARAMETERS, Extents
from dy2st.runtime.cpu.conv.shape import FIELDS
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.tile import Tile
from dy2st.runtime.cpu.integers import all_of, compare, least, minus, plus, times

_MIXED = 8
"""How many images are mixed."""
_LEAST = 6
"""From so many images on, the results that nobody reads cost less than they save (measured)."""


def mixes(f: Function, tile: Tile, row: str = "%shape") -> str:
    """Write whether images are several and small, and mixed ones can be convolved by vectors of places."""
    extents = Extents(f, tile, row)
    small = compare(f, "slt", extents.places, tile.lanes)
    several, dense = compare(f, "sge", extents.batch, _LEAST), compare(f, "eq", extents.shape["stride2"], 1)
    return all_of(f, small, several, dense, applies(f, tile, Extents(f, tile, _mixed_row(f, row))))


def mixed(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.mixed(x, w, c, shape, scratch)`, where `mixes` says so."""
    f = Function(f"dy2st.conv.{tile.dtype}.mixed", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents = Extents(f, tile)
    row, sizes = _mixed_row(f, "%shape"), _Sizes(f, tile, extents)
    mix, by_places = _mix(tile), direct(tile)
    results = f.offset("%scratch", sizes.images)
    behind = f.offset(results, sizes.results)
    image, result = (times(f, n, extents.groups) for n in (extents.image, extents.group_result))
    f.call("void", f"@{mix.name}", "ptr %x", "ptr %scratch", f"i64 {extents.batch}", f"i64 {image}", "i1 true")
    f.call("void", f"@{by_places.name}", "ptr %scratch", "ptr %w", f"ptr {results}", f"ptr {row}", f"ptr {behind}")
    f.call("void", f"@{mix.name}", "ptr %c", f"ptr {results}", f"i64 {extents.batch}", f"i64 {result}", "i1 false")
    f.ret()
    return Definition(f.name, f.text(), (mix, by_places))


def mixed_scratch(tile: Tile) -> Definition:
    """Return `i64 @dy2st.conv.f32.mixed.scratch(shape)`; nothing where images are not mixed."""
    f = Function(f"dy2st.conv.{tile.dtype}.mixed.scratch", (("ptr", "%shape"),), "i64", linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    with f.when(mixes(f, tile)):
        sizes, inner = _Sizes(f, tile, Extents(f, tile)), direct_scratch(tile)
        room = f.call("i64", f"@{inner.name}", f"ptr {_mixed_row(f, '%shape')}")
        f.ret("i64", plus(f, sizes.images, sizes.results, room))
    f.ret("i64", "0")
    return Definition(f.name, f.text(), (inner,))


class _Sizes:
    """The bytes of mixed images and results, multiples of 64."""

    def __init__(self, f: Function, tile: Tile, extents: Extents):
        mixtures = _mixtures(f, extents.batch)
        self.images, self.results = (
            times(f, mixtures, extents.groups, n, _MIXED * 8) for n in (extents.image, extents.group_result)
        )


def _mixtures(f: Function, batch: str) -> str:
    return f.value(f"udiv i64 {plus(f, batch, _MIXED - 1)}, {_MIXED}")


def _mixed_row(f: Function, row: str) -> str:
    """Write the shape row of the convolution of mixed images."""
    made = f.slot("i64", len(FIELDS))
    for at, name in enumerate(FIELDS):
        value = f.load("i64", f.offset(row, 8 * at))
        if name in ("in2", "out2", "low2", "dilation2"):
            value = times(f, value, _MIXED)
        f.store("i64", _mixtures(f, value) if name == "batch" else value, f.offset(made, 8 * at))
    return made


def _mix(tile: Tile) -> Definition:
    """Return the function that mixes images of %size elements, or takes them apart; images that miss are zeros."""
    t = tile.element
    parameters = (("ptr", "%images"), ("ptr", "%mixed"), ("i64", "%batch"), ("i64", "%size"), ("i1", "%mixes"))
    f = Function(f"dy2st.conv.{tile.dtype}.mix", parameters, linkage="internal", also="noinline nounwind")
    with f.loop("%batch", step=_MIXED) as first:
        there = least(f, minus(f, "%batch", first), _MIXED)
        begin = times(f, first, "%size")
        images, mixed_ones = f.offset("%images", begin, t), f.offset("%mixed", begin, t)
        with f.when("%mixes"), f.loop("%size") as i:
            place = f.offset(mixed_ones, times(f, i, _MIXED), t)
            with f.loop(there) as b:
                value = f.load(t, f.offset(images, plus(f, times(f, b, "%size"), i), t))
                f.store(t, value, f.offset(place, b, t))
            with f.loop(str(_MIXED), start=there) as b:
                f.store(t, "0.0", f.offset(place, b, t))
        with f.when(f.value("xor i1 %mixes, true")), f.loop(there) as b, f.loop("%size") as i:
            value = f.load(t, f.offset(mixed_ones, plus(f, times(f, i, _MIXED), b), t))
            f.store(t, value, f.offset(images, plus(f, times(f, b, "%size"), i), t))
    f.ret()
    return Definition(f.name, f.text())
