"""Convolution over one or two axes by vectors of places: the image is laid out once, and nothing is multiplied in vain.

Vectors of several images follow each other, so that small images fill the kernels, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.backends.cpu.conv.common.epilogue import call_finish, finish
from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents
from dy2st.runtime.backends.cpu.conv.direct.output_vectors import (
    VECTOR_BYTES,
    OutputPositions,
    OutputVector,
    describe_vectors,
    permutation,
)
from dy2st.runtime.backends.cpu.conv.direct.pack_planes import fill_planes
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.gemm.microkernel import fmuladd, fused, lane_mask, masked_memory, masked_store, spread
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, most, negation, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.prefetch import PREFETCH, prefetch
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_KERNEL = (
    ("ptr", "%w"), ("i64", "%w_row"), ("ptr", "%planes"), ("ptr", "%taps"), ("ptr", "%vectors"), ("ptr", "%c"),
    ("i64", "%c_row"), ("i64", "%filters"), ("i64", "%k"),
)  # fmt: skip
"""Strides in bytes."""
_ROWS = {1: (8, 4), 2: (8, 4), 3: (8, 6, 4, 2)}
"""How many filters the kernels of so many vectors take: the fewest that are as many as are left, or all."""
_BLOCK = 8
"""Filters are shared between threads in multiples of so many."""
_UNITS = 16
"""So many units keep several threads busy: where there are fewer groups of vectors, filters are cut into blocks."""
_COST = 320
"""Picoseconds that a vector of places takes for an element of a filter."""
_SHORT = 512
"""The elements of a filter up to which the next ones are asked for: a CPU does not look beyond short rows by itself."""
_TOGETHER = 1 << 20
"""The bytes of planes up to which images are laid out together."""


def applies(f: LLVMFunction, tile: Tile, extents: GroupExtents) -> str:
    """Write whether a convolution is over two axes at most and its vectors' lanes stand close."""
    shape = extents.shape
    flat = [compare(f, "eq", shape[name], 1) for name in ("in0", "kernel0", "out0")]
    some = [compare(f, "sgt", shape[name], 0) for name in ("channels", "kernel1", "kernel2")]
    close = OutputPositions(f, tile, PaddedPlanes(f, tile, extents)).stand_close()
    return all_of(f, *flat, compare(f, "eq", shape["low0"], 0), *some, compare(f, "sgt", extents.batch, 0), close)


class ScratchLayout:
    """The parts of the scratch memory: taps, lanes, vectors, planes."""

    def __init__(self, f: LLVMFunction, tile: Tile, extents: GroupExtents, scratch: str = "%scratch"):
        self._f, self._tile, self._extents = f, tile, extents
        self.planes = PaddedPlanes(f, tile, extents)
        self.places = OutputPositions(f, tile, self.planes)
        image = times(f, self.planes.image, tile.size)
        fitting = most(f, f.value(f"udiv i64 {_TOGETHER}, {most(f, image, 1)}"), 1)
        turns = most(f, f.value(f"udiv i64 {minus(f, plus(f, extents.batch, fitting), 1)}, {fitting}"), 1)
        even = f.value(f"udiv i64 {minus(f, plus(f, extents.batch, turns), 1)}, {turns}")
        self.images = most(f, even, 1)
        """How many images are laid out together: about as many each time."""
        self.taps = scratch
        self.lanes = f.offset(scratch, self.planes.taps_bytes)
        self.vectors = f.offset(self.lanes, self.places.lanes_bytes)
        described = self.places.described_bytes(self.images)
        self.data = f.offset(self.lanes, described)
        margin = 3 * tile.lanes * tile.size
        self.bytes = plus(f, self.planes.taps_bytes, described, times(f, self.images, image), margin)

    @contextmanager
    def chunks(
        self, fill: Definition, describe: Definition, finishes: bool = False
    ) -> Iterator[tuple[str, str, str, str]]:
        """Write loops over groups and as many images as are laid out together: x, w, c and how many vectors.

        Where the result `finishes`, what follows is done with it, chunk by chunk if there is one group.
        """
        f, extents, t = self._f, self._extents, self._tile.element
        one = compare(f, "eq", extents.groups, 1)
        self.planes.write_taps(self.taps)
        f.call("void", f"@{describe.name}", f"ptr {self.lanes}", f"ptr {self.vectors}", f"i64 {self.images}",
               "ptr %shape")  # fmt: skip
        with f.loop(extents.groups) as g, f.loop(extents.batch, step=self.images) as b:
            number = plus(f, times(f, b, extents.groups), g)
            before = times(f, b, self.planes.mixed)
            x = f.offset("%x", times(f, plus(f, times(f, before, extents.groups), g), extents.image), t)
            w = f.offset("%w", times(f, g, extents.group_filters), t)
            c = f.offset("%c", times(f, number, extents.group_result), t)
            images = least(f, minus(f, extents.batch, b), self.images)
            apart = times(f, extents.image, extents.groups)
            f.call("void", f"@{fill.name}", f"ptr {x}", f"ptr {self.data}", f"i64 {apart}",
                   f"i64 {minus(f, extents.images, before)}", "ptr %shape", f"i64 {images}")  # fmt: skip
            yield x, w, c, times(f, images, self.places.vectors)
            if finishes:
                with f.when(one):
                    first, count = times(f, b, extents.filters), times(f, images, extents.filters)
                    call_finish(f, first, count, extents.places)
        if finishes:
            with f.when(negation(f, one)):
                channels = times(f, extents.batch, extents.groups, extents.filters)
                call_finish(f, "0", channels, extents.places)


def direct(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.direct(x, w, c, shape, scratch)`, where `applies` says so."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.direct", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents = GroupExtents(f, tile)
    layout, fill, describe = ScratchLayout(f, tile, extents), fill_planes(tile), describe_vectors(tile)
    body, step = _groups(tile), tile.vectors
    w_row, c_row = times(f, extents.depth, tile.size), times(f, extents.places, tile.size)
    needs: list[Definition] = [fill, describe, body, finish()]
    with layout.chunks(fill, describe, finishes=True) as (_, w, c, count):
        groups = f.value(f"udiv i64 {plus(f, count, step - 1)}, {step}")
        block, blocks = filter_blocks(f, extents.filters, groups, _BLOCK, _UNITS)
        arguments = (
            ("ptr", w), ("i64", w_row), ("ptr", layout.data), ("ptr", layout.taps), ("ptr", layout.vectors), ("ptr", c),
            ("i64", c_row), ("i64", extents.filters), ("i64", extents.depth), ("i64", count), ("i64", groups),
            ("i64", block),
        )  # fmt: skip
        cost = times(f, block, extents.depth, step * _COST)
        needs.append(forked(f, body.name, arguments, times(f, groups, blocks), cost))
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


def filter_blocks(f: LLVMFunction, filters: str, groups: str, least_block: int, units: int) -> tuple[str, str]:
    """Write how many filters are a block, and how many blocks there are, for `units` with so many groups of places."""
    some_groups = most(f, groups, 1)
    wanted = f.value(f"udiv i64 {minus(f, plus(f, units, some_groups), 1)}, {some_groups}")
    room = times(f, wanted, least_block)
    some = f.value(f"udiv i64 {minus(f, plus(f, filters, room), 1)}, {room}")
    block = times(f, most(f, some, 1), least_block)
    return block, f.value(f"udiv i64 {minus(f, plus(f, filters, block), 1)}, {block}")


def even_share(f: LLVMFunction, number: str, groups: str, count: str) -> tuple[str, str]:
    """Write where the vectors of a group begin and how many they are, of groups that differ by one at most."""
    first, end = (f.value(f"udiv i64 {times(f, n, count)}, {groups}") for n in (number, plus(f, number, 1)))
    return first, minus(f, end, first)


def _groups(tile: Tile) -> Definition:
    """Return the function that computes some units: the results of a block of filters for a group of vectors."""
    parameters = (*_KERNEL, ("i64", "%count"), ("i64", "%groups"), ("i64", "%block"), *RANGE)
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.direct.groups", parameters, linkage="internal", also="noinline nounwind")
    rows = [_rows(tile, n) for n in range(1, tile.vectors + 1)]
    with f.loop("%to", start="%from") as unit:
        before = f.value(f"udiv i64 {unit}, %groups")
        first, here = even_share(f, minus(f, unit, times(f, before, "%groups")), "%groups", "%count")
        done = times(f, before, "%block")
        own = {
            "%vectors": f.offset("%vectors", times(f, first, VECTOR_BYTES)),
            "%w": f.offset("%w", times(f, done, "%w_row")),
            "%c": f.offset("%c", times(f, done, "%c_row")),
            "%filters": least(f, minus(f, "%filters", done), "%block"),
        }
        operands = [f"{kind} {own.get(name, name)}" for kind, name in _KERNEL]
        for n, function in enumerate(rows, 1):
            with f.when(compare(f, "eq", here, n)):
                f.call("void", f"@{function.name}", *operands)
    f.ret()
    return Definition(f.name, f.text(), tuple(rows))


def direct_scratch(tile: Tile) -> Definition:
    """Return `i64 @dy2st.conv.f32.direct.scratch(shape)`."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.direct.scratch", (("ptr", "%shape"),), "i64", linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    f.ret("i64", ScratchLayout(f, tile, GroupExtents(f, tile), "null").bytes)
    return Definition(f.name, f.text())


def _rows(tile: Tile, vectors: int) -> Definition:
    """Return the function that runs the kernels of so many vectors down the filters."""
    f = LLVMFunction(
        f"dy2st.conv.{tile.dtype}.filters.{vectors}", _KERNEL, linkage="internal", also="noinline nounwind"
    )
    choices = _ROWS[vectors]
    kernels = [_kernel(tile, rows, vectors) for rows in choices]
    with f.loop("%filters", step=choices[0]) as i:
        left = minus(f, "%filters", i)
        w, c = f.offset("%w", times(f, i, "%w_row")), f.offset("%c", times(f, i, "%c_row"))
        for n, kernel in enumerate(kernels):
            fewer = choices[n + 1] if n + 1 < len(choices) else 0
            chosen = [compare(f, "sgt", left, fewer)]
            if n:
                chosen.append(compare(f, "sle", left, choices[n]))
            with f.when(all_of(f, *chosen)):
                f.call("void", f"@{kernel.name}", f"ptr {w}", "i64 %w_row", "ptr %planes", "ptr %taps", "ptr %vectors",
                       f"ptr {c}", "i64 %c_row", f"i64 {left}", "i64 %k")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), tuple(kernels))


def _kernel(tile: Tile, rows: int, vectors: int) -> Definition:
    """Return the kernel for some filters and vectors of places; filters past the last are copies of it."""
    name = f"dy2st.conv.{tile.dtype}.{rows}x{vectors}"
    f = LLVMFunction(name, _KERNEL, linkage="internal", also="noinline nounwind")
    v, last = tile.vector, minus(f, "%filters", 1)
    filters, results = ["%w"], ["%c"]
    for i in range(1, rows):
        row = least(f, last, i)
        filters.append(f.offset("%w", times(f, row, "%w_row")))
        results.append(f.offset("%c", times(f, row, "%c_row")))
    read = [OutputVector(f, tile, f.offset("%vectors", VECTOR_BYTES * j)) for j in range(vectors)]
    sums = [[f.slot(v) for _ in range(vectors)] for _ in range(rows)]
    for place in (place for row in sums for place in row):
        f.store(v, "zeroinitializer", place)
    following, short = f.offset("%w", times(f, "%w_row", rows)), compare(f, "sle", "%k", _SHORT)
    apart = f.value(f"select i1 {short}, i64 {rows * tile.size}, i64 0")
    with f.loop("%k") as p:
        prefetch(f, f.offset(following, times(f, p, apart)))
        tap = f.load("i64", f.offset("%taps", p, "i64"))
        elements = [vector.read(tap) for vector in read]
        for row, places in zip(filters, sums, strict=True):
            factor = spread(f, tile, f.load(tile.element, f.offset(row, p, tile.element)))
            for element, place in zip(elements, places, strict=True):
                f.store(v, fused(f, tile, factor, element, f.load(v, place)), place)
    masks = [lane_mask(f, tile.lanes, vector.count) for vector in read]
    for row, places in zip(results, sums, strict=True):
        for vector, mask, place in zip(read, masks, places, strict=True):
            masked_store(f, tile, f.load(v, place), f.offset(row, vector.result), mask)
    f.ret()
    return Definition(name, f.text(), (fmuladd(tile), permutation(tile), PREFETCH, *masked_memory(tile)))
