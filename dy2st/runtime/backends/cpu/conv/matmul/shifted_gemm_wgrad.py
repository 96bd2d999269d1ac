"""The gradient by the filters where windows move by 1: dot products of lines of the cotangent with lines of the image.

Line by line, a product of every filter's cotangent with what each place of the kernel saw is added up in vectors; what
crosses the end of a line is masked, so that nothing outside of a window meets the cotangent.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import GroupExtents
from dy2st.runtime.backends.cpu.conv.matmul.shifted_gemm import EXTENTS, PaddedSizes, padded_image, write_rows
from dy2st.runtime.backends.cpu.gemm.dot_product import DotBlock, clamped, dot_needs
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, plus, rounded_down, times

_KERNEL = (
    ("ptr", "%a"), ("i64", "%a_row"), ("i64", "%a_line"), ("ptr", "%b"), ("ptr", "%b_rows"), ("i64", "%b_line"),
    ("ptr", "%c"), ("i64", "%c_row"), ("i64", "%c_column"), ("i64", "%m"), ("i64", "%n"), ("i64", "%lines"),
    ("i64", "%count"),
)  # fmt: skip
"""Strides in bytes; `lines` of `count` elements each."""

_MANY_VECTORS = 24
"""From so many vectors of places on, dot products beat laying windows out (measured)."""


def dots_pay(f: LLVMFunction, t: Tile, extents: GroupExtents) -> str:
    """Write whether lines fill at least half of their vectors, and are many."""
    count = extents.shape["out2"]
    whole = rounded_down(f, plus(f, count, t.lanes - 1), t.lanes)
    full = compare(f, "sle", whole, times(f, count, 2))
    vectors = f.value(f"sdiv i64 {times(f, extents.shape['out1'], whole)}, {t.lanes}")
    return all_of(f, full, compare(f, "sge", vectors, _MANY_VECTORS))


def shifted_gemm_wgrad(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.shifted_gemm_wgrad(x, w, c, scratch, <EXTENTS>)`, which adds one image's share to
    w.
    """
    name = f"dy2st.conv.{tile.dtype}.sliding_weights"
    parameters = [("ptr", register) for register in ("%x", "%w", "%c", "%scratch")]
    f = LLVMFunction(
        name, [*parameters, *(("i64", f"%{e}") for e in EXTENTS)], linkage="internal", also="noinline nounwind"
    )
    sizes, size, (rows, columns) = PaddedSizes(f, tile), tile.size, tile.dots
    kernel = line_dots(tile, rows, columns)
    write_rows(f, tile, sizes, "%scratch")
    image = padded_image(f, tile, sizes, f.offset("%scratch", sizes.rows_bytes))
    line, padded_line = times(f, "%out2", size), times(f, sizes.width, size)
    plane, w_row = times(f, "%out1", line), times(f, sizes.depth, size)
    with f.loop(sizes.depth, step=columns) as j, f.loop("%filters", step=rows) as i:
        c, w = f.offset("%c", times(f, i, plane)), f.offset("%w", times(f, i, w_row))
        table, here = f.offset("%scratch", j, "i64"), f.offset(w, times(f, j, size))
        f.call("void", f"@{kernel.name}", f"ptr {c}", f"i64 {plane}", f"i64 {line}", f"ptr {image}", f"ptr {table}",
               f"i64 {padded_line}", f"ptr {here}", f"i64 {w_row}", f"i64 {size}", f"i64 {minus(f, '%filters', i)}",
               f"i64 {minus(f, sizes.depth, j)}", "i64 %out1", "i64 %out2")  # fmt: skip
    f.ret()
    return Definition(name, f.text(), (kernel, *(masked_memory(tile) if tile.lanes > 1 else ())))


def line_dots(tile: Tile, rows: int, columns: int) -> Definition:
    """Return the kernel for a block of dot products, which adds to c; rows past the last are copies of the last."""
    name = f"dy2st.conv.{tile.dtype}.lines.{rows}x{columns}"
    f = LLVMFunction(name, _KERNEL, linkage="internal", also="noinline nounwind")
    lanes = tile.lanes
    a_rows, _ = clamped(f, "%a", "%a_row", "%m", rows)
    _, numbers = clamped(f, "%b", "0", "%n", columns)
    b_rows = [f.offset("%b", f.load("i64", f.offset("%b_rows", j, "i64"))) for j in numbers]
    block = DotBlock(f, tile, a_rows, b_rows)
    whole = rounded_down(f, "%count", lanes)
    left = minus(f, "%count", whole)
    with f.loop("%lines") as line:
        a_line, b_line = times(f, line, "%a_line"), times(f, line, "%b_line")
        with f.loop(whole, step=lanes) as p:
            at = times(f, p, tile.size)
            block.add(plus(f, a_line, at), plus(f, b_line, at))
        with f.when(compare(f, "sgt", left, 0)):
            at = times(f, whole, tile.size)
            block.add(plus(f, a_line, at), plus(f, b_line, at), left)
    block.write("true")
    f.ret()
    return Definition(name, f.text(), dot_needs(tile))
