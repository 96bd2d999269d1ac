"""Convolution with kernels of 3 by 3 by products of 16 transformed parts, of which 4 results cost 16 multiplications.

    Y = A^T ((G g G^T) * (B^T d B)) A     for each tile of 2 by 2 results (A. Lavin and S. Gray, "Fast algorithms for
                                          convolutional neural networks", 2016)

Tiles move by 2 over windows of 4 by 4, so they are the places of a convolution of stride 2, which padded_planes.py and
output_vectors.py lay out. Sums of elements stand where single elements did: an infinity or a NaN, or what comes near
the largest number, spreads to the rest of its tile. Where a result is not finite, all is computed again without tiles,
and what follows it is done again.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.epilogue import call_finish, finish
from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import FIELDS
from dy2st.runtime.backends.cpu.conv.direct.forward import ScratchLayout, applies, direct, even_share, filter_blocks
from dy2st.runtime.backends.cpu.conv.direct.output_vectors import VECTOR_BYTES, describe_vectors
from dy2st.runtime.backends.cpu.conv.direct.pack_planes import fill_planes
from dy2st.runtime.backends.cpu.conv.direct.winograd_transforms import (
    GROUP,
    PARTS,
    filters_part,
    images_part,
    part_bytes,
    results_part,
)
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_TEAM = 8
"""How many threads there is room for."""
_LEAST_TILES, _LEAST_CHANNELS = 16, 32
"""From so many tiles, and so many channels and filters, on it is faster (measured)."""
_COST = 160
"""Picoseconds that a vector of tiles takes for an element of a part."""
_FILTER_COST = 2000
"""Picoseconds that it takes to transform the filter of a channel."""
_BLOCK, _UNITS = 32, 6
"""Filters are cut into blocks of so many or more where there are fewer groups of tiles than units."""
_BODY = (
    ("ptr", "%planes"), ("ptr", "%taps"), ("ptr", "%vectors"), ("i64", "%count"), ("ptr", "%u"), ("ptr", "%rooms"),
    ("ptr", "%c"), ("ptr", "%tiles"), ("ptr", "%shape"), ("i64", "%groups"), ("i64", "%block"),
)  # fmt: skip


def tiles_pay(f: LLVMFunction, tile: Tile, extents: GroupExtents, row: str) -> str:
    """Write whether a convolution is done by tiles, of which `row` is the shape row."""
    shape = extents.shape
    ones = ("in0", "out0", "kernel0", "groups", *(f"{n}{a}" for n in ("stride", "dilation") for a in (1, 2)))
    fixed = [compare(f, "eq", shape[name], 1) for name in ones]
    fixed += [compare(f, "eq", shape[f"kernel{a}"], 3) for a in (1, 2)]
    wide = [compare(f, "sge", n, _LEAST_CHANNELS) for n in (extents.channels, extents.filters)]
    own = GroupExtents(f, tile, row)
    many = compare(f, "sge", times(f, extents.batch, own.places), _LEAST_TILES)
    return all_of(f, *fixed, *wide, many, applies(f, tile, own), applies(f, tile, extents))


def tiles_row(f: LLVMFunction, row: str = "%shape") -> str:
    """Write the shape row of the tiles."""
    made = f.slot("i64", len(FIELDS))
    for at, name in enumerate(FIELDS):
        value = f.load("i64", f.offset(row, 8 * at))
        if name == "out1":
            value = f.value(f"sdiv i64 {plus(f, value, 1)}, 2")
        elif name == "out2":
            mixed = f.load("i64", f.offset(row, 8 * FIELDS.index("mixed")))
            places = f.value(f"sdiv i64 {value}, {mixed}")
            value = times(f, f.value(f"sdiv i64 {plus(f, places, 1)}, 2"), mixed)
        elif name[:-1] in ("kernel", "stride") and name[-1] != "0":
            value = {"kernel": "4", "stride": "2"}[name[:-1]]
        f.store("i64", value, f.offset(made, 8 * at))
    return made


def winograd(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.winograd(x, w, c, shape, scratch)`, where `tiles_pay` says so."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.winograd", PARAMETERS, linkage="internal", also="noinline nounwind")
    row = tiles_row(f)
    extents, sizes = GroupExtents(f, tile, row), _Sizes(f, tile, row)
    fill, describe, part, body, again = (
        fill_planes(tile),
        describe_vectors(tile),
        filters_part(tile),
        _body(tile),
        direct(tile),
    )
    rooms = f.offset("%scratch", sizes.filters)
    layout = ScratchLayout(f, tile, extents, f.offset(rooms, times(f, sizes.room, _TEAM)))
    needs = [fill, describe, body, again, part, finish()]
    arguments = (("ptr", "%w"), ("ptr", "%scratch"), ("i64", extents.filters), ("i64", extents.channels))
    needs.append(forked(f, part.name, arguments, extents.filters, times(f, extents.channels, _FILTER_COST)))
    with f.loop(str(_TEAM)) as who:
        f.store("i64", "0", f.offset(rooms, times(f, who, sizes.room)))
    layout.planes.write_taps(layout.taps)
    f.call("void", f"@{describe.name}", f"ptr {layout.lanes}", f"ptr {layout.vectors}", f"i64 {layout.images}",
           f"ptr {row}")  # fmt: skip
    places = GroupExtents(f, tile).places
    result = times(f, extents.filters, places)
    with f.loop(extents.batch, step=layout.images) as b:
        before = times(f, b, layout.planes.mixed)
        x = f.offset("%x", times(f, before, extents.image), tile.element)
        c = f.offset("%c", times(f, b, result), tile.element)
        images = least(f, minus(f, extents.batch, b), layout.images)
        f.call("void", f"@{fill.name}", f"ptr {x}", f"ptr {layout.data}", f"i64 {extents.image}",
               f"i64 {minus(f, extents.images, before)}", f"ptr {row}", f"i64 {images}")  # fmt: skip
        count = times(f, images, layout.places.vectors)
        groups = f.value(f"udiv i64 {plus(f, count, GROUP - 1)}, {GROUP}")
        block, blocks = filter_blocks(f, extents.filters, groups, _BLOCK, _UNITS)
        arguments = (
            ("ptr", layout.data), ("ptr", layout.taps), ("ptr", layout.vectors), ("i64", count), ("ptr", "%scratch"),
            ("ptr", rooms), ("ptr", c), ("ptr", row), ("ptr", "%shape"), ("i64", groups), ("i64", block),
        )  # fmt: skip
        cost = times(f, block, extents.channels, GROUP * PARTS * _COST)
        needs.append(forked(f, body.name, arguments, times(f, groups, blocks), cost, _TEAM))
        call_finish(f, times(f, b, extents.filters), times(f, images, extents.filters), places)
    with f.loop(str(_TEAM)) as who:
        infinite = f.load("i64", f.offset(rooms, times(f, who, sizes.room)))
        with f.when(compare(f, "ne", infinite, 0)):
            f.call("void", f"@{again.name}", *(f"ptr {register}" for _, register in PARAMETERS))
            f.ret()
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


def winograd_scratch(tile: Tile) -> Definition:
    """Return `i64 @dy2st.conv.f32.winograd.scratch(shape)`; nothing where it is not done so."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.winograd.scratch", (("ptr", "%shape"),), "i64", linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    row = tiles_row(f)
    with f.when(tiles_pay(f, tile, GroupExtents(f, tile), row)):
        sizes = _Sizes(f, tile, row)
        layout = ScratchLayout(f, tile, GroupExtents(f, tile, row), "null")
        f.ret("i64", plus(f, sizes.filters, times(f, sizes.room, _TEAM), layout.bytes))
    f.ret("i64", "0")
    return Definition(f.name, f.text())


class _Sizes:
    """Bytes: of transformed filters and their parts, and of a thread's room for images and results of a group."""

    def __init__(self, f: LLVMFunction, tile: Tile, row: str):
        extents = GroupExtents(f, tile, row)
        width = GROUP * tile.lanes * tile.size
        self.filter_part = part_bytes(f, extents.filters, extents.channels, tile.size)
        self.image_part = part_bytes(f, extents.channels, width)
        self.filters, self.images = (times(f, part, PARTS) for part in (self.filter_part, self.image_part))
        results = times(f, part_bytes(f, extents.filters, width), PARTS)
        self.room = plus(f, 64, self.images, results, tile.lanes * tile.size)


def _body(tile: Tile) -> Definition:
    """Return the function that computes some units: the results of a block of filters for a group of vectors."""
    f = LLVMFunction(f"dy2st.conv.{tile.dtype}.winograd.groups", (*_BODY, *RANGE), linkage="internal",
                 also="noinline nounwind")  # fmt: skip
    image, multiply, result = images_part(tile), panels(tile), results_part(tile)
    extents, sizes = GroupExtents(f, tile, "%tiles"), _Sizes(f, tile, "%tiles")
    width = GROUP * tile.lanes * tile.size
    room = f.offset("%rooms", times(f, "%who", sizes.room))
    v = f.offset(room, 64)
    m = f.offset(v, sizes.images)
    u_row = times(f, extents.channels, tile.size)
    with f.loop("%to", start="%from") as unit:
        before = f.value(f"udiv i64 {unit}, %groups")
        first, here = even_share(f, minus(f, unit, times(f, before, "%groups")), "%groups", "%count")
        done = times(f, before, "%block")
        filters = least(f, minus(f, extents.filters, done), "%block")
        vectors = f.offset("%vectors", times(f, first, VECTOR_BYTES))
        f.call("void", f"@{image.name}", "ptr %planes", "ptr %taps", f"ptr {vectors}", f"i64 {here}", f"ptr {v}",
               f"i64 {extents.channels}")  # fmt: skip
        u, result_part = f.offset("%u", times(f, done, u_row)), part_bytes(f, filters, width)
        with f.loop(str(PARTS)) as part:
            places = ((u, sizes.filter_part), (v, sizes.image_part), (m, result_part))
            a, b, c = (f.offset(base, times(f, part, step)) for base, step in places)
            f.call("void", f"@{multiply.name}", f"ptr {a}", f"i64 {u_row}", f"i64 {tile.size}", f"ptr {b}",
                   f"i64 {width}", f"ptr {c}", f"i64 {width}", f"i64 {filters}",
                   f"i64 {times(f, here, tile.lanes)}", f"i64 {extents.channels}", "i1 false", "i1 false")  # fmt: skip
        f.call("void", f"@{result.name}", f"ptr {m}", f"i64 {first}", f"i64 {here}", "ptr %c", f"i64 {done}",
               f"i64 {filters}", f"ptr {room}", "ptr %tiles", "ptr %shape")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (image, multiply, result))
