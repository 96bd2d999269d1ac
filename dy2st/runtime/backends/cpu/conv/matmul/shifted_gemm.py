"""Convolution over one or two axes whose windows move by 1, without laying windows out.

The image is copied once, with its padding around it. Then for each channel and place of the kernel the elements that
all windows have there lie in one line, as long as the kernel moves on over the ends of rows: so the convolution is a
product with a matrix whose rows are lines of the image that begin at `rows`, and of whose columns those are left out
that belong to windows across an end.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents, copy_elements, each_group
from dy2st.runtime.backends.cpu.conv.common.im2col import ColumnRun, gather_run
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import inside
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory
from dy2st.runtime.backends.cpu.gemm.panels import scattered_panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import (
    all_of,
    any_of,
    compare,
    least,
    minus,
    most,
    negation,
    plus,
    rounded_down,
    times,
)

EXTENTS = (
    "channels",
    "filters",
    "in1",
    "in2",
    "kernel1",
    "kernel2",
    "out1",
    "out2",
    "low1",
    "low2",
    "dilation1",
    "dilation2",
)
"""Extents of one group of one image; those of common/shape_descriptor.py by name."""


def shifted_gemm(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.sliding(x, w, out, scratch, <EXTENTS>)` for one group of one image."""
    name = f"dy2st.conv.{tile.dtype}.sliding"
    parameters = [
        ("ptr", "%x"),
        ("ptr", "%w"),
        ("ptr", "%out"),
        ("ptr", "%scratch"),
        *(("i64", f"%{e}") for e in EXTENTS),
    ]
    f = LLVMFunction(name, parameters, linkage="internal", also="noinline nounwind")
    multiply = scattered_panels(tile)
    size, element = tile.size, tile.element
    sizes = PaddedSizes(f, tile)
    rows = "%scratch"
    image = f.offset(rows, sizes.rows_bytes)
    results = f.offset(image, sizes.image_bytes)
    write_rows(f, tile, sizes, rows)
    padded = padded_image(f, tile, sizes, image)
    w_row, places = times(f, sizes.depth, size), times(f, "%out1", "%out2")
    places_bytes = times(f, places, size)
    with f.loop("%out1", step=sizes.together) as y:
        lines = least(f, minus(f, "%out1", y), sizes.together)
        columns = plus(f, times(f, minus(f, lines, 1), sizes.width), "%out2")
        here = f.offset("%out", times(f, y, "%out2"), element)
        start = f.offset(padded, times(f, y, sizes.width), element)
        single, bare = compare(f, "eq", lines, 1), compare(f, "eq", sizes.width, "%out2")
        dense = any_of(f, single, bare)
        columns_bytes = times(f, columns, size)
        c = f.value(f"select i1 {dense}, ptr {here}, ptr {results}")
        c_row = f.value(f"select i1 {dense}, i64 {places_bytes}, i64 {columns_bytes}")
        f.call("void", f"@{multiply.name}", "ptr %w", f"i64 {w_row}", f"i64 {size}", f"ptr {start}", f"ptr {rows}",
               f"ptr {c}", f"i64 {c_row}", "i64 %filters", f"i64 {columns}", f"i64 {sizes.depth}",
               "i1 false")  # fmt: skip
        with f.when(negation(f, dense)), f.loop("%filters") as i, f.loop(lines) as line:
            source = plus(f, times(f, i, columns), times(f, line, sizes.width))
            target = plus(f, times(f, i, places), times(f, line, "%out2"))
            copy_elements(f, tile, f.offset(results, source, element), f.offset(here, target, element), "%out2")
    f.ret()
    return Definition(name, f.text(), (multiply, *(masked_memory(tile) if tile.lanes > 1 else ())))


def shifted_gemm_dgrad(tile: Tile, one: Definition) -> Definition:
    """Return the function of a batch that calls `one` (`shifted_gemm`, `shifted_gemm_wgrad`) for each group of an
    image.
    """
    f = LLVMFunction(f"{one.name}.images", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents = GroupExtents(f, tile)
    with each_group(f, tile, extents) as (x, w, c, _):
        f.call("void", f"@{one.name}", f"ptr {x}", f"ptr {w}", f"ptr {c}", "ptr %scratch", *_operands(extents))
    f.ret()
    return Definition(f.name, f.text(), (one,))


def shifted_gemm_scratch(tile: Tile) -> Definition:
    """Return `i64 @dy2st.conv.f32.sliding.scratch(shape)`, the bytes of scratch that any of these functions needs."""
    name = f"dy2st.conv.{tile.dtype}.sliding.scratch"
    inner = LLVMFunction(f"{name}.one", [("i64", f"%{e}") for e in EXTENTS], "i64", linkage="internal", also="nounwind")
    sizes = PaddedSizes(inner, tile)
    results = times(inner, "%filters", sizes.together, sizes.width, tile.size)
    inner.ret("i64", plus(inner, results, sizes.rows_bytes, sizes.image_bytes))
    f = LLVMFunction(name, (("ptr", "%shape"),), "i64", linkage="internal", also="nounwind")
    f.ret("i64", f.call("i64", f"@{inner.name}", *_operands(GroupExtents(f, tile))))
    return Definition(name, f.text(), (Definition(inner.name, inner.text()),))


def _operands(extents: GroupExtents) -> list[str]:
    """Return the extents of one group of one image."""
    own = {"channels": extents.channels, "filters": extents.filters}
    return [f"i64 {own[name] if name in own else extents.shape[name]}" for name in EXTENTS]


class PaddedSizes:
    """What follows from the extents: the padded image, and how many of its rows are multiplied at a time."""

    def __init__(self, f: LLVMFunction, tile: Tile):
        self.height, self.width = (
            plus(f, f"%out{axis}", times(f, minus(f, f"%kernel{axis}", 1), f"%dilation{axis}")) for axis in (1, 2)
        )
        self.depth = times(f, "%channels", "%kernel1", "%kernel2")
        fitting = f.value(f"sdiv i64 {tile.width}, {most(f, self.width, 1)}")
        self.together = most(f, least(f, fitting, "%out1"), 1)
        self.rows_bytes = rounded_down(f, plus(f, times(f, self.depth, 8), 63), 64)
        room = times(f, "%channels", self.height, self.width, tile.size)
        self.image_bytes = rounded_down(f, plus(f, room, tile.lanes * tile.size + 63), 64)


def write_rows(f: LLVMFunction, tile: Tile, sizes: PaddedSizes, rows: str) -> None:
    """Write where the line of each channel and place of the kernel begins."""
    at = f.slot("ptr")
    f.store("ptr", rows, at)
    with f.loop("%channels") as channel, f.loop("%kernel1") as i, f.loop("%kernel2") as j:
        line = plus(f, times(f, channel, sizes.height), times(f, i, "%dilation1"))
        place = plus(f, times(f, line, sizes.width), times(f, j, "%dilation2"))
        here = f.load("ptr", at)
        f.store("i64", times(f, place, tile.size), here)
        f.store("ptr", f.offset(here, 8), at)


def padded_image(f: LLVMFunction, tile: Tile, sizes: PaddedSizes, image: str) -> str:
    """Write the copy of the image with its padding, and return it, or the image itself where it has none."""
    conditions = [f.value(f"icmp eq i64 %low{a}, 0") for a in (1, 2)]
    pairs = zip((1, 2), (sizes.height, sizes.width), strict=True)
    bare = all_of(f, *conditions, *(f.value(f"icmp eq i64 %in{a}, {extent}") for a, extent in pairs))
    with f.when(negation(f, bare)), f.loop("%channels") as channel, f.loop(sizes.height) as y:
        number = plus(f, times(f, channel, sizes.height), y)
        there = f.offset(image, times(f, number, sizes.width), tile.element)
        row = minus(f, y, "%low1")
        exists = inside(f, row, "%in1")
        elements_before = times(f, plus(f, times(f, channel, "%in1"), row), "%in2")
        image_row = f.value(f"getelementptr {tile.element}, ptr %x, i64 {elements_before}")
        low = least(f, most(f, "%low2", 0), sizes.width)
        high = most(f, least(f, plus(f, "%in2", "%low2"), sizes.width), low)
        high = f.value(f"select i1 {exists}, i64 {high}, i64 {low}")
        gather_run(f, tile, ColumnRun(image_row, there, minus(f, 0, "%low2"), sizes.width, low, high, "1"))
    return f.value(f"select i1 {bare}, ptr %x, ptr {image}")
