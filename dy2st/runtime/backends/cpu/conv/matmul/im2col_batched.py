"""Convolution of many small images: windows of several stand side by side, so that filters are read once for all.

The matrix of windows has a column for each place of each image; results and cotangents are brought to that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents, copy_elements, fill_zeros
from dy2st.runtime.backends.cpu.conv.common.im2col import gather, scatter
from dy2st.runtime.backends.cpu.gemm.epilogue import NOTHING
from dy2st.runtime.backends.cpu.gemm.matmul import matmul_kernel
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, plus, times


def small_places(tile: Tile) -> int:
    """Return the places up to which images are small: there, a vector would hold few windows of one."""
    return tile.width // 12


def im2col_batched(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.together(x, w, c, shape, scratch)`; results have at most `small_places` places."""
    sides, multiply, windows = _Sides(tile, "together"), panels(tile), gather(tile)
    f, extents, element = sides.f, sides.extents, tile.element
    w_row = times(f, extents.depth, tile.size)
    with sides.images():
        c_row = times(f, sides.columns, tile.size)
        with sides.steps() as (p, steps):
            sides.each_block(windows, p, steps)
            f.call("void", f"@{multiply.name}", f"ptr {f.offset(sides.w, p, element)}", f"i64 {w_row}",
                   f"i64 {tile.size}", "ptr %scratch", f"i64 {extents.row_bytes}", f"ptr {sides.lines}", f"i64 {c_row}",
                   f"i64 {extents.filters}", f"i64 {sides.columns}", f"i64 {steps}",
                   f"i1 {compare(f, 'sgt', p, 0)}", "i1 false")  # fmt: skip
        sides.copy_lines(to_lines=False)
    return sides.finished(multiply, windows)


def im2col_batched_wgrad(tile: Tile, target: Target) -> Definition:
    """Return the function that adds to w the gradient by the filters of many small images."""
    multiply, windows = matmul_kernel(tile.dtype, False, True, target), gather(tile)
    sides = _Sides(tile, "together_weights")
    f, extents, element = sides.f, sides.extents, tile.element
    with sides.images():
        sides.copy_lines(to_lines=True)
        with sides.steps() as (p, steps):
            sides.each_block(windows, p, steps)
            f.call("void", f"@{multiply.name}", f"ptr {sides.lines}", f"i64 {sides.columns}", "ptr %scratch",
                   f"i64 {extents.row_bytes // tile.size}", f"ptr {f.offset(sides.w, p, element)}",
                   f"i64 {extents.depth}", f"i64 {extents.filters}", f"i64 {steps}", f"i64 {sides.columns}",
                   f"ptr {sides.behind}", "i1 true", NOTHING)  # fmt: skip
    return sides.finished(multiply, windows)


def im2col_batched_dgrad(tile: Tile, target: Target) -> Definition:
    """Return the function that writes to x the gradient by many small images."""
    multiply, windows = matmul_kernel(tile.dtype, True, False, target), scatter(tile)
    sides = _Sides(tile, "together_images")
    f, extents, element = sides.f, sides.extents, tile.element
    fill_zeros(f, tile, "%x", times(f, extents.batch, extents.groups, extents.image))
    with sides.images():
        sides.copy_lines(to_lines=True)
        with sides.steps() as (p, steps):
            f.call("void", f"@{multiply.name}", f"ptr {f.offset(sides.w, p, element)}", f"i64 {extents.depth}",
                   f"ptr {sides.lines}", f"i64 {sides.columns}", "ptr %scratch",
                   f"i64 {extents.row_bytes // tile.size}", f"i64 {steps}", f"i64 {sides.columns}",
                   f"i64 {extents.filters}", f"ptr {sides.behind}", "i1 false", NOTHING)  # fmt: skip
            sides.each_block(windows, p, steps)
    return sides.finished(multiply, windows)


def im2col_batched_scratch(f: LLVMFunction, tile: Tile, extents: GroupExtents) -> str:
    """Write the bytes of scratch that these functions need: a block, the lines, and what a product needs."""
    room = extents.row_bytes * tile.depth + 64 + tile.width * tile.depth * tile.size
    return plus(f, times(f, extents.filters, tile.width, tile.size), room)


class _Sides:
    """A function over groups of filters and as many images at a time as fit side by side."""

    w: str
    """The filters of the group."""
    columns: str
    """The places of all images together."""

    def __init__(self, tile: Tile, what: str):
        name = f"dy2st.conv.{tile.dtype}.{what}"
        self.tile, self.f = tile, LLVMFunction(name, PARAMETERS, linkage="internal", also="noinline nounwind")
        self.extents = GroupExtents(self.f, tile)
        self.lines = self.f.offset("%scratch", self.extents.row_bytes * tile.depth + 64)
        """Results or cotangents in the order of the columns, a line each filter."""
        self.behind = self.f.offset(self.lines, times(self.f, self.extents.filters, tile.width, tile.size))

    @contextmanager
    def images(self) -> Iterator[None]:
        """Write loops over groups and images."""
        f, extents = self.f, self.extents
        fitting = f.value(f"sdiv i64 {self.tile.width}, {most(f, extents.places, 1)}")
        with f.loop(extents.groups) as g, f.loop(extents.batch, step=fitting) as first:
            self._images = least(f, minus(f, extents.batch, first), fitting)
            self._first = plus(f, times(f, first, extents.groups), g)
            self.columns = times(f, self._images, extents.places)
            self.w = f.offset("%w", times(f, g, extents.group_filters), self.tile.element)
            yield

    @contextmanager
    def steps(self) -> Iterator[tuple[str, str]]:
        """Write a loop over the rows of the matrix of windows, as many at a time as a block has."""
        f, depth = self.f, self.extents.depth
        with f.loop(depth, step=self.tile.depth) as p:
            yield p, least(f, minus(f, depth, p), self.tile.depth)

    def each_block(self, windows: Definition, p: str, steps: str) -> None:
        """Write calls of `gather` or `scatter` for each image's columns of the block."""
        f, extents, element = self.f, self.extents, self.tile.element
        with f.loop(self._images) as i:
            x = f.offset("%x", times(f, self._number(i), extents.image), element)
            block = f.offset("%scratch", times(f, i, extents.places), element)
            f.call("void", f"@{windows.name}", f"ptr {x}", f"ptr {block}", f"i64 {extents.row_bytes}", f"i64 {p}",
                   f"i64 {steps}", "i64 0", f"i64 {extents.places}", "ptr %shape")  # fmt: skip

    def copy_lines(self, to_lines: bool) -> None:
        """Write copies between %c and the lines."""
        f, extents, element = self.f, self.extents, self.tile.element
        with f.loop(self._images) as i, f.loop(extents.filters) as k:
            line = plus(f, times(f, k, self.columns), times(f, i, extents.places))
            place = plus(f, times(f, self._number(i), extents.group_result), times(f, k, extents.places))
            near, far = f.offset(self.lines, line, element), f.offset("%c", place, element)
            source, target = (far, near) if to_lines else (near, far)
            copy_elements(f, self.tile, source, target, extents.places)

    def finished(self, *needs: Definition) -> Definition:
        """Return the function."""
        self.f.ret()
        return Definition(
            self.f.name, self.f.text(), (*needs, *(masked_memory(self.tile) if self.tile.lanes > 1 else ()))
        )

    def _number(self, i: str) -> str:
        return plus(self.f, self._first, times(self.f, i, self.extents.groups))
