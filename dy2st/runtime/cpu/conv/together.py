"""Convolution of many small images: windows of several stand side by side, so that filters are read once for all."""

from __future__ import annotations

from dy2st.runtime.cpu.conv.columns import gather
from dy2st.runtime.cpu.conv.extents import PARAMETERS, Extents, copy_elements
from dy2st.runtime.cpu.conv.shape import least, minus, most, plus, product
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.micro import masked_memory
from dy2st.runtime.cpu.gemm.panels import panels
from dy2st.runtime.cpu.gemm.tile import Tile


def small_places(tile: Tile) -> int:
    """Return the places up to which images are small: there, a vector would hold few windows of one."""
    return tile.width // 12


def together(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.together(x, w, out, shape, scratch)`; results have at most `small_places` places."""
    f = Function(f"dy2st.conv.{tile.dtype}.together", PARAMETERS, linkage="internal", also="noinline nounwind")
    extents = Extents(f, tile)
    multiply, windows = panels(tile), gather(tile)
    element, size, places = tile.element, tile.size, extents.places
    results = f.offset("%scratch", extents.row_bytes * tile.depth + 64)
    fitting = f.value(f"sdiv i64 {tile.width}, {most(f, places, 1)}")
    w_row = product(f, [extents.depth, size])
    with f.loop(extents.groups) as g, f.loop(extents.batch, step=fitting) as first:
        images = least(f, minus(f, extents.batch, first), fitting)
        columns = product(f, [images, places])
        c_row = product(f, [columns, size])
        number = plus(f, product(f, [first, extents.groups]), g)
        w = f.offset("%w", product(f, [g, extents.group_filters]), element)
        with f.loop(extents.depth, step=tile.depth) as p:
            steps = least(f, minus(f, extents.depth, p), tile.depth)
            with f.loop(images) as i:
                own = plus(f, number, product(f, [i, extents.groups]))
                x = f.offset("%x", product(f, [own, extents.image]), element)
                block = f.offset("%scratch", product(f, [i, places]), element)
                f.call("void", f"@{windows.name}", f"ptr {x}", f"ptr {block}", f"i64 {extents.row_bytes}", f"i64 {p}",
                       f"i64 {steps}", "i64 0", f"i64 {places}", "ptr %shape")  # fmt: skip
            f.call("void", f"@{multiply.name}", f"ptr {f.offset(w, p, element)}", f"i64 {w_row}", f"i64 {size}",
                   "ptr %scratch", f"i64 {extents.row_bytes}", f"ptr {results}", f"i64 {c_row}",
                   f"i64 {extents.filters}", f"i64 {columns}", f"i64 {steps}", f"i1 {f.value(f'icmp sgt i64 {p}, 0')}",
                   "i1 false")  # fmt: skip
        with f.loop(images) as i, f.loop(extents.filters) as k:
            own = plus(f, number, product(f, [i, extents.groups]))
            source = plus(f, product(f, [k, columns]), product(f, [i, places]))
            target = plus(f, product(f, [own, extents.group_result]), product(f, [k, places]))
            copy_elements(f, tile, f.offset(results, source, element), f.offset("%c", target, element), places)
    f.ret()
    return Definition(f.name, f.text(), (multiply, windows, *(masked_memory(tile) if tile.lanes > 1 else ())))


def together_bytes(f: Function, tile: Tile, extents: Extents) -> str:
    """Write the bytes of scratch that `together` needs."""
    return plus(f, product(f, [extents.filters, tile.width, tile.size]), extents.row_bytes * tile.depth + 64)
