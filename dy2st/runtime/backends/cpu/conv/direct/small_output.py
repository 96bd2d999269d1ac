"""Convolution with few places, as dot products along the windows: filters are read once, as they lie.

Each place's window is copied together, and where a vector of places would be mostly empty, vectors lie along it.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents
from dy2st.runtime.backends.cpu.conv.direct.pack_planes import fill_planes
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.gemm.dot_product import dot_kernel
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_FILTERS = 8
"""How many filters a part has at least."""
_COST = 400
"""Picoseconds to read an element of a filter from memory that is far."""
_CHUNK = 1024
"""So many elements of each window stay in the nearest cache while the filters pass."""
_COPY_COST = 1000
"""Picoseconds to copy an element of a window."""
_MOST = 8
"""The places up to which vectors along the windows are fuller."""


def has_small_output(f: LLVMFunction, extents: GroupExtents) -> str:
    """Write whether there are so few places, over two axes at most."""
    shape = extents.shape
    flat = [compare(f, "eq", shape[name], 1) for name in ("in0", "kernel0", "out0")]
    some = [compare(f, "sgt", shape[name], 0) for name in ("channels", "kernel1", "kernel2")]
    few = compare(f, "sle", times(f, extents.batch, extents.places), _MOST)
    return all_of(f, *flat, compare(f, "eq", shape["low0"], 0), *some, few)


def small_output(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.few(x, w, c, shape, scratch)`, where `has_small_output` says so."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.few", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents = GroupExtents(f, tile)
    planes, fill, copy, body = (
        PaddedPlanes(f, tile, extents),
        fill_planes(tile),
        _copy_windows(tile),
        _some_filters(tile),
    )
    row, needs = times(f, extents.depth, tile.size), [fill, copy, body]
    image = f.offset("%scratch", planes.taps_bytes)
    windows = f.offset(image, _image_bytes(f, tile, planes))
    planes.write_taps("%scratch")
    with f.loop(extents.batch) as b, f.loop(extents.groups) as g:
        number = plus(f, times(f, b, extents.groups), g)
        x, w, c = (
            f.offset(base, times(f, at, count), tile.element)
            for base, at, count in (
                ("%x", number, extents.image), ("%w", g, extents.group_filters), ("%c", number, extents.group_result)
            )
        )  # fmt: skip
        f.call("void", f"@{fill.name}", f"ptr {x}", f"ptr {image}", "i64 0", "i64 1", "ptr %shape", "i64 1")
        copied = (("ptr", "%scratch"), ("ptr", image), ("ptr", windows), ("ptr", "%shape"))
        needs.append(forked(f, copy.name, copied, extents.depth, times(f, extents.places, _COPY_COST)))
        arguments = (("ptr", w), ("ptr", windows), ("i64", row), ("ptr", c), ("i64", extents.filters),
                     ("i64", extents.places), ("i64", extents.depth))  # fmt: skip
        units = f.value(f"udiv i64 {plus(f, extents.filters, _FILTERS - 1)}, {_FILTERS}")
        needs.append(forked(f, body.name, arguments, units, times(f, extents.depth, _FILTERS * _COST)))
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


def _some_filters(tile: Tile) -> Definition:
    """Return the function that takes the dot products of some groups of filters with all windows."""
    parameters = (("ptr", "%w"), ("ptr", "%windows"), ("i64", "%row"), ("ptr", "%c"), ("i64", "%filters"),
                  ("i64", "%places"), ("i64", "%depth"), *RANGE)  # fmt: skip
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.few.filters", parameters, linkage="internal", also="noinline nounwind")
    rows, columns = tile.dots
    dots, size = dot_kernel(tile, rows, far=True), tile.size
    first = times(f, "%from", _FILTERS)
    end = least(f, times(f, "%to", _FILTERS), "%filters")
    begin, c_row = times(f, first, "%row"), times(f, "%places", size)
    with f.loop("%depth", step=_CHUNK) as p, f.loop("%places", step=columns) as j:
        steps, at = least(f, minus(f, "%depth", p), _CHUNK), times(f, p, size)
        done = compare(f, "sge", plus(f, p, _CHUNK), "%depth")
        next_chunk = f.value(f"select i1 {done}, i64 {times(f, end, '%row')}, i64 {plus(f, begin, at, _CHUNK * size)}")
        windows = f.offset(f.offset("%windows", times(f, j, "%row")), at)
        with f.loop(end, start=first, step=rows) as i:
            here, result = plus(f, times(f, i, "%row"), at), plus(f, times(f, i, c_row), times(f, j, size))
            last, below = compare(f, "sge", plus(f, i, rows), end), plus(f, here, times(f, "%row", rows))
            following = f.value(f"select i1 {last}, i64 {next_chunk}, i64 {below}")
            f.call("void", f"@{dots.name}", f"ptr {f.offset('%w', here)}", "i64 %row", f"ptr {windows}", "i64 %row",
                   f"ptr {f.offset('%c', result)}", f"i64 {c_row}", f"i64 {size}", f"i64 {minus(f, end, i)}",
                   f"i64 {minus(f, '%places', j)}", f"i64 {steps}", f"i1 {compare(f, 'sgt', p, 0)}",
                   f"ptr {f.offset('%w', following)}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (dots,))


def small_output_scratch(f: LLVMFunction, tile: Tile, extents: GroupExtents) -> str:
    """Write the bytes of scratch that `small_output` needs."""
    planes = PaddedPlanes(f, tile, extents)
    windows = times(f, extents.places, extents.depth, tile.size)
    return plus(f, planes.taps_bytes, _image_bytes(f, tile, planes), windows)


def _image_bytes(f: LLVMFunction, tile: Tile, planes: PaddedPlanes) -> str:
    return plus(f, times(f, planes.image, tile.size), tile.lanes * tile.size)


def _copy_windows(tile: Tile) -> Definition:
    """Return the function that copies some elements of each place's window, one window behind the other."""
    parameters = (("ptr", "%taps"), ("ptr", "%image"), ("ptr", "%windows"), ("ptr", "%shape"), *RANGE)
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.few.windows", parameters, linkage="internal", also="noinline nounwind")
    planes, t = PaddedPlanes(f, tile, GroupExtents(f, tile)), tile.element
    shape = planes.extents.shape
    with f.loop(shape["out1"]) as y, f.loop(shape["out2"]) as x:
        first = f.offset("%image", plus(f, times(f, y, planes.width), x), t)
        number = plus(f, times(f, y, shape["out2"]), x)
        window = f.offset("%windows", times(f, number, planes.extents.depth), t)
        with f.loop("%to", start="%from") as p:
            tap = f.load("i64", f.offset("%taps", p, "i64"))
            f.store(t, f.load(t, f.offset(first, tap)), f.offset(window, p, t))
    f.ret()
    return Definition(f.name, f.text())
