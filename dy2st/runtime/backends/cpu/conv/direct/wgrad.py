"""The gradient by the filters by vectors of places: dot products of cotangents with what each tap met.

What a vector has past the last place is zero on both sides.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents
from dy2st.runtime.backends.cpu.conv.direct.forward import ScratchLayout
from dy2st.runtime.backends.cpu.conv.direct.output_vectors import (
    VECTOR_BYTES,
    OutputVector,
    describe_vectors,
    permutation,
)
from dy2st.runtime.backends.cpu.conv.direct.pack_planes import fill_planes
from dy2st.runtime.backends.cpu.gemm.dot_product import DotBlock, clamped, dot_needs
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_KERNEL = (
    ("ptr", "%a"), ("i64", "%a_row"), ("ptr", "%planes"), ("ptr", "%taps"), ("ptr", "%vectors"), ("i64", "%count"),
    ("ptr", "%c"), ("i64", "%c_row"), ("i64", "%c_column"), ("i64", "%m"), ("i64", "%n"),
)  # fmt: skip
"""Cotangents, planes and the gradient; strides in bytes."""
_BLOCK = (8, 3)
"""Filters by taps whose dot products are taken together."""
_COST = 8000
"""Picoseconds that a block takes for a vector of places."""
_MANY = 48
"""From so many vectors on, sums in lanes cost less than windows that are laid out (measured)."""


def many_places(f: LLVMFunction, tile: Tile, extents: GroupExtents) -> str:
    """Write whether images that are laid out together have many vectors of places."""
    layout = ScratchLayout(f, tile, extents)
    return compare(f, "sge", times(f, layout.images, layout.places.vectors), _MANY)


def direct_wgrad(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.direct_wgrad(x, w, c, shape, scratch)`, which adds to w."""
    f = LLVMFunction(
        f"dy2st.conv.{tile.dtype}.direct_weights", PARAMETERS, linkage="internal", also="noinline nounwind"
    )
    extents = GroupExtents(f, tile)
    layout, fill, describe = ScratchLayout(f, tile, extents), fill_planes(tile), describe_vectors(tile)
    body, needs = _blocks(tile), [fill, describe]
    w_row, c_row = times(f, extents.depth, tile.size), times(f, extents.places, tile.size)
    with layout.chunks(fill, describe) as (_, w, c, count):
        arguments = (
            ("ptr", c), ("i64", c_row), ("ptr", layout.data), ("ptr", layout.taps), ("ptr", layout.vectors),
            ("i64", count), ("ptr", w), ("i64", w_row), ("i64", extents.filters), ("i64", extents.depth),
        )  # fmt: skip
        blocks = (_blocks_of(f, n, step) for n, step in zip((extents.filters, extents.depth), _BLOCK, strict=True))
        needs.append(forked(f, body.name, arguments, times(f, *blocks), times(f, count, _COST)))
    f.ret()
    return Definition(f.name, f.text(), (*needs, body))


def _blocks(tile: Tile) -> Definition:
    """Return the function that adds to some of the blocks of the gradient, which are counted row after row."""
    parameters = [p for p in _KERNEL if p[1] != "%c_column"]
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.dots.blocks", [*parameters, *RANGE], linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    kernel, (filters, taps) = _kernel(tile), _BLOCK
    across = _blocks_of(f, "%n", taps)
    with f.loop("%to", start="%from") as number:
        i = times(f, f.value(f"udiv i64 {number}, {across}"), filters)
        j = times(f, f.value(f"urem i64 {number}, {across}"), taps)
        a, c = f.offset("%a", times(f, i, "%a_row")), f.offset("%c", times(f, i, "%c_row"))
        f.call("void", f"@{kernel.name}", f"ptr {a}", "i64 %a_row", "ptr %planes", f"ptr {f.offset('%taps', j, 'i64')}",
               "ptr %vectors", "i64 %count", f"ptr {f.offset(c, j, tile.element)}", "i64 %c_row", f"i64 {tile.size}",
               f"i64 {minus(f, '%m', i)}", f"i64 {minus(f, '%n', j)}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (kernel,))


def _blocks_of(f: LLVMFunction, count: str, step: int) -> str:
    return f.value(f"udiv i64 {plus(f, count, step - 1)}, {step}")


def _kernel(tile: Tile) -> Definition:
    """Return the kernel for a block of dot products; filters and taps past the last are copies of the last."""
    filters, taps = _BLOCK
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.dots", _KERNEL, linkage="internal", also="noinline nounwind")
    lanes, v = tile.lanes, tile.vector
    rows, _ = clamped(f, "%a", "%a_row", "%m", filters)
    last = minus(f, "%n", 1)
    starts = [f.load("i64", f.offset("%taps", least(f, last, j), "i64")) for j in range(taps)]
    block = DotBlock(f, tile, rows, starts)

    def add(vector: OutputVector, mask: str | None) -> None:
        read = [vector.read(start) for start in starts]
        if mask is not None:
            read = [f.value(f"select <{lanes} x i1> {mask}, {v} {r}, {v} zeroinitializer") for r in read]
        there = [f.offset(row, vector.result) for row in rows]
        block.add_vectors(
            [f.value(f"load {v}, ptr {t}, align {tile.size}") if mask is None else masked_load(f, tile, t, mask)
             for t in there],
            read,
        )  # fmt: skip

    with f.loop("%count") as p:
        vector = OutputVector(f, tile, f.offset("%vectors", times(f, p, VECTOR_BYTES)))
        whole, part, after = f.label("whole"), f.label("part"), f.label("added")
        f.branch(compare(f, "eq", vector.count, lanes), whole, part)
        f.start(whole)
        add(vector, None)
        f.jump(after)
        f.start(part)
        add(vector, lane_mask(f, lanes, vector.count))
        f.start(after)
    block.write("true")
    f.ret()
    return Definition(f.name, f.text(), (*dot_needs(tile), permutation(tile)))
