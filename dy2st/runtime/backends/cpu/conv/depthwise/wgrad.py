"""The gradient by the filters where each group has few: dot products of a filter's cotangent with its group's planes.

A group's gradient is one unit of work, which goes through all images, so its sums do not depend on how many threads
there are.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents
from dy2st.runtime.backends.cpu.conv.depthwise.forward import DepthwiseScratch, in_rooms
from dy2st.runtime.backends.cpu.conv.direct.pack_planes import fill_channels
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.conv.matmul.shifted_gemm_wgrad import line_dots
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import minus, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE

_TAPS = 8
"""How many taps' dot products are taken together."""
_COST, _ELEMENT_COST = 60, 200
"""Picoseconds that a place takes for a tap; and besides."""


def depthwise_wgrad(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.depthwise_wgrad(x, w, c, shape, scratch)`, which adds to w."""
    return in_rooms(tile, "alone_weights", _groups(tile), (_COST, _ELEMENT_COST), images_together=True)


def _groups(tile: Tile) -> Definition:
    """Return the function that adds to the gradients of some groups."""
    parameters = (*PARAMETERS[:4], ("ptr", "%taps"), ("ptr", "%rooms"), *RANGE)
    name = f"dy2st.conv.{tile.dtype}.alone_weights.groups"
    f = LLVMFunction(name, parameters, linkage="internal", also="noinline nounwind")
    fill, dots, t, size = fill_channels(tile), line_dots(tile, 1, _TAPS), tile.element, tile.size
    extents = GroupExtents(f, tile)
    planes, shape = PaddedPlanes(f, tile, extents), extents.shape
    own = f.offset("%rooms", times(f, "%who", DepthwiseScratch(f, tile, planes).bytes))
    line, plane_line = times(f, shape["out2"], size), times(f, planes.width, size)
    with f.loop("%to", start="%from") as group, f.loop(extents.images) as b:
        number = plus(f, times(f, b, extents.groups), group)
        x = f.offset("%x", times(f, number, extents.image), t)
        f.call("void", f"@{fill.name}", f"ptr {x}", f"ptr {own}", "i64 0", "i64 1", "ptr %shape", "i64 0",
               f"i64 {extents.channels}", "i64 0")  # fmt: skip
        with f.loop(extents.filters) as n, f.loop(extents.depth, step=_TAPS) as tap:
            c = f.offset("%c", times(f, plus(f, times(f, number, extents.filters), n), extents.places), t)
            w = plus(f, times(f, plus(f, times(f, group, extents.filters), n), extents.depth), tap)
            f.call("void", f"@{dots.name}", f"ptr {c}", "i64 0", f"i64 {line}", f"ptr {own}",
                   f"ptr {f.offset('%taps', tap, 'i64')}", f"i64 {plane_line}", f"ptr {f.offset('%w', w, t)}", "i64 0",
                   f"i64 {size}", "i64 1", f"i64 {minus(f, extents.depth, tap)}", f"i64 {shape['out1']}",
                   f"i64 {shape['out2']}")  # fmt: skip
    f.ret()
    return Definition(name, f.text(), (fill, dots, *(masked_memory(tile) if tile.lanes > 1 else ())))
