"""What all functions of convolution share: their operands, what they derive from the shape row, loops and copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import ConvShape, axis_fields
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_store
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, most, plus, rounded_down, times

PARAMETERS = (("ptr", "%x"), ("ptr", "%w"), ("ptr", "%c"), ("ptr", "%shape"), ("ptr", "%scratch"))
"""Image, filters and result (or its cotangent), dense; the shape row of shape_descriptor.py; scratch aligned to 64."""


class GroupExtents:
    """Extents of one group of one image, in registers."""

    def __init__(self, f: LLVMFunction, t: Tile, row: str = "%shape"):
        names = ["batch", "channels", "filters", "groups", "mixed"]
        self.shape = shape = ConvShape(
            f, [*names, *axis_fields("in", "kernel", "out", "stride", "low", "dilation")], row
        )
        self.images, self.groups = shape["batch"], shape["groups"]
        mixed = shape["mixed"]
        self.batch = f.value(f"udiv i64 {minus(f, plus(f, self.images, mixed), 1)}, {mixed}")
        """How many images there are, where mixed ones count as one."""
        groups = most(f, self.groups, 1)
        self.filters = f.value(f"sdiv i64 {shape['filters']}, {groups}")
        self.channels = f.value(f"sdiv i64 {shape['channels']}, {groups}")
        self.depth = times(f, self.channels, *shape.axes("kernel"))
        self.places = times(f, *shape.axes("out"))
        self.image = times(f, self.channels, *shape.axes("in"))
        self.group_filters = times(f, self.filters, self.depth)
        self.group_result = times(f, self.filters, self.places)
        self.row_bytes = (t.width + t.lanes) * t.size
        """A row of a block of windows; the product's own scratch stands behind `depth` such rows and a vector."""


@contextmanager
def each_group(f: LLVMFunction, t: Tile, extents: GroupExtents) -> Iterator[tuple[str, str, str, str]]:
    """Write loops over batch and groups: gives the addresses of image, filters and result, and which one it is."""
    with f.loop(extents.batch) as b, f.loop(extents.groups) as g:
        number = plus(f, times(f, b, extents.groups), g)
        x = f.offset("%x", times(f, number, extents.image), t.element)
        w = f.offset("%w", times(f, g, extents.group_filters), t.element)
        c = f.offset("%c", times(f, number, extents.group_result), t.element)
        yield x, w, c, number


def fill_zeros(f: LLVMFunction, t: Tile, address: str, count: str) -> None:
    """Write zeros."""
    whole = rounded_down(f, count, t.lanes)
    with f.loop(whole, step=t.lanes) as i:
        f.do(f"store {t.vector} zeroinitializer, ptr {f.offset(address, i, t.element)}, align {t.size}")
    with f.loop(count, start=whole) as i:
        f.store(t.element, "0.0", f.offset(address, i, t.element))


def copy_elements(f: LLVMFunction, tile: Tile, source: str, target: str, count: str) -> None:
    """Write a copy of `count` elements."""
    whole = rounded_down(f, count, tile.lanes)
    with f.loop(whole, step=tile.lanes) as i:
        value = f.value(f"load {tile.vector}, ptr {f.offset(source, i, tile.element)}, align {tile.size}")
        f.do(f"store {tile.vector} {value}, ptr {f.offset(target, i, tile.element)}, align {tile.size}")
    if tile.lanes > 1:
        left = minus(f, count, whole)
        with f.when(compare(f, "sgt", left, 0)):
            mask = lane_mask(f, tile.lanes, left)
            value = masked_load(f, tile, f.offset(source, whole, tile.element), mask)
            masked_store(f, tile, value, f.offset(target, whole, tile.element), mask)
