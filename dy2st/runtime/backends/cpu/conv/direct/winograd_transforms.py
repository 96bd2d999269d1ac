"""The transforms of winograd.py: filters, windows of images and results as 16 parts, and back."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.conv.common.extents import GroupExtents
from dy2st.runtime.backends.cpu.conv.direct.output_vectors import VECTOR_BYTES, OutputVector, permutation
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_memory, masked_store
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, negation, plus, rounded_up, times
from dy2st.runtime.backends.cpu.llvm_ir.prefetch import PREFETCH, prefetch
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE

GROUP = 3
"""How many vectors of tiles are taken together."""
PARTS = 16
_MIXED = 8
"""How many images are mixed (batch_interleaved.py): so many neighbours in a vector are one tile of different images."""

_AHEAD = 8192
"""So many bytes ahead filters are asked for."""


def part_bytes(f: LLVMFunction, *sizes: str | int) -> str:
    """Write the bytes from a part to the next: a line more than it has, lest all parts want the same set of a cache."""
    return plus(f, rounded_up(f, times(f, *sizes), 64), 64)


def filters_part(tile: Tile) -> Definition:
    """Return the function that writes G g G^T of some filters: u[part][filter][channel]."""
    t, v, lanes = tile.element, tile.vector, tile.lanes
    parameters = (("ptr", "%w"), ("ptr", "%u"), ("i64", "%filters"), ("i64", "%channels"), *RANGE)
    f = LLVMFunction(
        f"dy2st.conv.{tile.dtype}.winograd.filters", parameters, linkage="internal", also="noinline nounwind"
    )
    half, part = tile.splat("0.5"), part_bytes(f, "%filters", "%channels", tile.size)

    def widened(x: str, y: str, z: str) -> list[str]:
        ends = f.value(f"fadd {v} {x}, {z}")
        sums = [f.value(f"{what} {v} {ends}, {y}") for what in ("fadd", "fsub")]
        return [x, *(f.value(f"fmul {v} {s}, {half}") for s in sums), z]

    with f.loop("%to", start="%from") as n, f.loop("%channels", step=lanes) as channel:
        at, left = plus(f, times(f, n, "%channels"), channel), minus(f, "%channels", channel)
        first = f.offset("%w", times(f, at, 9), t)
        for i in range(9):
            prefetch(f, f.offset(first, _AHEAD + i * lanes * tile.size))
        g = _filters(f, tile, first, times(f, left, 9))
        columns = [widened(*(g[i][j] for i in range(3))) for j in range(3)]
        mask = lane_mask(f, lanes, left)
        for i in range(4):
            for j, value in enumerate(widened(*(column[i] for column in columns))):
                there = f.offset(f.offset("%u", times(f, part, 4 * i + j)), at, t)
                masked_store(f, tile, value, there, mask)
    f.ret()
    return Definition(f.name, f.text(), (PREFETCH, *masked_memory(tile)))


def _filters(f: LLVMFunction, tile: Tile, first: str, left: str) -> list[list[str]]:
    """Write a vector of channels for each place of the kernel; in memory each channel has nine elements."""
    lanes, read = tile.lanes, list[str]()
    for i in range(9):
        mask = lane_mask(f, lanes, minus(f, left, i * lanes))
        read.append(masked_load(f, tile, f.offset(first, i * lanes, tile.element), mask))
    by_column = [_every_third(f, tile, read[i : i + 3]) for i in (0, 3, 6)]
    columns = [_every_third(f, tile, [third[j] for third in by_column]) for j in range(3)]
    return [[column[i] for column in columns] for i in range(3)]


def _every_third(f: LLVMFunction, tile: Tile, vectors: list[str]) -> list[str]:
    """Write three vectors' elements, of which every third goes into the same vector."""
    v, lanes, made = tile.vector, tile.lanes, list[str]()
    for first in range(3):
        sources = range(first, 3 * lanes, 3)
        both = ", ".join(f"i32 {s}" if s < 2 * lanes else "i32 poison" for s in sources)
        two = f.value(f"shufflevector {v} {vectors[0]}, {v} {vectors[1]}, <{lanes} x i32> <{both}>")
        order = ", ".join(f"i32 {lane if s < 2 * lanes else s - lanes}" for lane, s in enumerate(sources))
        made.append(f.value(f"shufflevector {v} {two}, {v} {vectors[2]}, <{lanes} x i32> <{order}>"))
    return made


def images_part(tile: Tile) -> Definition:
    """Return the function that writes B^T d B of the windows of a group: v[part][channel][tile of the group]."""
    parameters = (("ptr", "%planes"), ("ptr", "%taps"), ("ptr", "%vectors"), ("i64", "%count"), ("ptr", "%v"),
                  ("i64", "%channels"))  # fmt: skip
    f = LLVMFunction(
        f"dy2st.conv.{tile.dtype}.winograd.images", parameters, linkage="internal", also="noinline nounwind"
    )
    v, width = tile.vector, GROUP * tile.lanes * tile.size
    part = part_bytes(f, "%channels", width)

    def narrowed(d: list[str]) -> list[str]:
        pairs = (("fsub", 0, 2), ("fadd", 1, 2), ("fsub", 2, 1), ("fsub", 1, 3))
        return [f.value(f"{what} {v} {d[a]}, {d[b]}") for what, a, b in pairs]

    with f.loop("%count") as j:
        vector = OutputVector(f, tile, f.offset("%vectors", times(f, j, VECTOR_BYTES)))
        column = f.offset("%v", times(f, j, tile.lanes), tile.element)
        with f.loop("%channels") as channel:
            taps = f.offset("%taps", times(f, channel, PARTS), "i64")
            d = [[vector.read(f.load("i64", f.offset(taps, 8 * (4 * y + x)))) for x in range(4)] for y in range(4)]
            columns = [narrowed([d[y][x] for y in range(4)]) for x in range(4)]
            there = f.offset(column, times(f, channel, width))
            for y in range(4):
                for x, value in enumerate(narrowed([column_[y] for column_ in columns])):
                    f.do(f"store {v} {value}, ptr {f.offset(there, times(f, part, 4 * y + x))}, align {tile.size}")
    f.ret()
    return Definition(f.name, f.text(), (permutation(tile),))


def results_part(tile: Tile) -> Definition:
    """Return the function that writes A^T m A of a group's tiles for some filters, and whether all are finite."""
    parameters = (("ptr", "%m"), ("i64", "%first"), ("i64", "%count"), ("ptr", "%c"), ("i64", "%before"),
                  ("i64", "%filters"), ("ptr", "%infinite"), ("ptr", "%tiles"), ("ptr", "%shape"))  # fmt: skip
    f = LLVMFunction(
        f"dy2st.conv.{tile.dtype}.winograd.results", parameters, linkage="internal", also="noinline nounwind"
    )
    tiles, real = GroupExtents(f, tile, "%tiles"), GroupExtents(f, tile)
    lanes, across = tile.lanes, tiles.shape["out2"]
    vectors = f.value(f"udiv i64 {plus(f, tiles.places, lanes - 1)}, {lanes}")
    at = f.slot("i64")
    with f.loop("%count") as j:
        number = plus(f, "%first", j)
        image = f.value(f"udiv i64 {number}, {vectors}")
        start = times(f, f.value(f"urem i64 {number}, {vectors}"), lanes)
        end = least(f, plus(f, start, lanes), tiles.places)
        plane = times(f, plus(f, times(f, image, real.filters), "%before"), real.places)
        f.store("i64", start, at)
        head, body, done = f.label("lines"), f.label("line"), f.label("written")
        f.start(head)
        n = f.load("i64", at)
        f.branch(compare(f, "slt", n, end), body, done)
        f.start(body)
        y = f.value(f"udiv i64 {n}, {across}")
        x = minus(f, n, times(f, y, across))
        count = least(f, minus(f, across, x), minus(f, end, n))
        column = plus(f, times(f, j, lanes), minus(f, n, start))
        _write_line(f, tile, real, (plane, y, x), (f.offset("%m", column, tile.element), count))
        f.store("i64", plus(f, n, count), at)
        f.jump(head)
        f.start(done)
    f.ret()
    finite = Definition(f"llvm.fabs.{tile.suffix}", f"declare {tile.vector} @llvm.fabs.{tile.suffix}({tile.vector})")
    return Definition(f.name, f.text(), (finite, *masked_memory(tile)))


def _write_line(
    f: LLVMFunction, tile: Tile, real: GroupExtents, place: tuple[str, str, str], read: tuple[str, str]
) -> None:
    """Write the loop over the filters for tiles beside each other: two lines of results, twice as long."""
    (plane, y, x), (m, count), v, lanes = place, read, tile.vector, tile.lanes
    width = GROUP * lanes * tile.size
    part = part_bytes(f, "%filters", width)
    height, long = real.shape["out1"], real.shape["out2"]
    left = least(f, times(f, count, 2), minus(f, long, times(f, x, 2)))
    masks = [lane_mask(f, lanes, minus(f, left, lanes * half)) for half in (0, 1)]
    exists = lane_mask(f, lanes, count)
    second = compare(f, "slt", plus(f, times(f, y, 2), 1), height)
    first = plus(f, plane, times(f, y, 2, long), times(f, x, 2))
    alone = compare(f, "eq", real.shape["mixed"], 1)

    def narrowed(r: list[str]) -> list[str]:
        middle = f.value(f"fadd {v} {r[1]}, {r[2]}")
        rest = f.value(f"fsub {v} {r[1]}, {r[2]}")
        return [f.value(f"fadd {v} {r[0]}, {middle}"), f.value(f"fsub {v} {rest}, {r[3]}")]

    with f.loop("%filters") as n:
        here = f.offset(m, times(f, n, width))
        parts = [f.value(f"load {v}, ptr {f.offset(here, times(f, part, i))}, align {tile.size}") for i in range(PARTS)]
        columns = [narrowed([parts[4 * i + j] for i in range(4)]) for j in range(4)]
        lines = [narrowed([column[i] for column in columns]) for i in range(2)]
        there = f.offset("%c", plus(f, first, times(f, n, real.places)), tile.element)
        _note_infinite(f, tile, [value for line in lines for value in line], exists)
        for single, condition in ((True, alone), (False, negation(f, alone))):
            with f.when(condition):
                _store_pairs(f, tile, lines[0], there, masks, single)
                with f.when(second):
                    _store_pairs(f, tile, lines[1], f.offset(there, long, tile.element), masks, single)


def _store_pairs(f: LLVMFunction, tile: Tile, pair: list[str], there: str, masks: list[str], single: bool) -> None:
    """Write the elements of two vectors by turns: each of a single image, eight of mixed ones."""
    lanes, turn = tile.lanes, 1 if single else _MIXED
    for half, mask in enumerate(masks):
        numbers = range(half * lanes, (half + 1) * lanes)
        order = (f"i32 {n // (2 * turn) * turn + n % turn + n // turn % 2 * lanes}" for n in numbers)
        both = f.value(f"shufflevector {tile.vector} {pair[0]}, {tile.vector} {pair[1]}, "
                       f"<{lanes} x i32> <{', '.join(order)}>")  # fmt: skip
        masked_store(f, tile, both, f.offset(there, half * lanes, tile.element), mask)


def _note_infinite(f: LLVMFunction, tile: Tile, values: list[str], exists: str) -> None:
    """Write a note where one of the lanes that exist is infinite or no number."""
    v, lanes = tile.vector, tile.lanes
    wrong: list[str] = []
    for value in values:
        size = f.call(v, f"@llvm.fabs.{tile.suffix}", f"{v} {value}")
        wrong.append(f.value(f"fcmp ueq {v} {size}, {tile.splat('0x7FF0000000000000')}"))
    some = wrong[0]
    for other in wrong[1:]:
        some = f.value(f"or <{lanes} x i1> {some}, {other}")
    some = f.value(f"and <{lanes} x i1> {some}, {exists}")
    with f.when(f.value(f"icmp ne i{lanes} {f.value(f'bitcast <{lanes} x i1> {some} to i{lanes}')}, 0")):
        f.store("i64", "1", "%infinite")
