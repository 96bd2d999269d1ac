"""The places of results as vectors: where each vector's elements begin in the planes, and which lane reads which.

The places of an image, row after row, are cut into vectors across the ends of rows. The lanes of one stand, for any
place of the kernel, within two vectors of the planes, so two reads and a permutation give them. That a CPU can permute
the lanes of two vectors by numbers which only the run tells is what `permutes` asks for.

    vector    0 bytes into the planes  8 its lanes' numbers  16 bytes into the results  24 how many lanes are places
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.conv.common.extents import GroupExtents
from dy2st.runtime.backends.cpu.conv.direct.padded_planes import PaddedPlanes
from dy2st.runtime.backends.cpu.gemm.microkernel import spread
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, plus, rounded_up, times

VECTOR_BYTES = 32


def permutes(target: Target) -> bool:
    """Return whether the CPU has the instruction that this way of convolution is built on."""
    return target.vector_bytes == 64 and target.triple.startswith("x86_64")


def permutation(tile: Tile) -> Definition:
    """Declare the permutation of two vectors' lanes (VPERMT2PS, VPERMT2PD)."""
    name = f"llvm.x86.avx512.vpermi2var.{'ps' if tile.size == 4 else 'pd'}.512"
    return Definition(name, f"declare {tile.vector} @{name}({tile.vector}, {_numbers(tile)}, {tile.vector})")


class OutputVector:
    """One vector of places in a kernel: its description is read once, its elements for each tap."""

    def __init__(self, f: LLVMFunction, tile: Tile, described: str):
        self._f, self._tile = f, tile
        self.planes = f.offset("%planes", f.load("i64", described))
        self._lanes = f.value(f"load {_numbers(tile)}, ptr {f.load('ptr', f.offset(described, 8))}, align {tile.size}")
        self.result = f.load("i64", f.offset(described, 16))
        self.count = f.load("i64", f.offset(described, 24))

    def read(self, tap: str) -> str:
        """Write the elements that meet a tap, of which the bytes into the planes are given."""
        f, tile, v = self._f, self._tile, self._tile.vector
        first = f.offset(self.planes, tap)
        halves = [
            f.value(f"load {v}, ptr {f.offset(first, i * tile.lanes * tile.size)}, align {tile.size}") for i in (0, 1)
        ]
        return f.call(v, f"@{permutation(tile).name}", f"{v} {halves[0]}", f"{_numbers(tile)} {self._lanes}",
                      f"{v} {halves[1]}")  # fmt: skip


class OutputPositions:
    """How many vectors the places of an image are, and whether their lanes stand close enough."""

    def __init__(self, f: LLVMFunction, tile: Tile, planes: PaddedPlanes):
        self.planes, self.extents = planes, planes.extents
        self._f, self._tile = f, tile
        self.vectors = f.value(f"sdiv i64 {plus(f, self.extents.places, tile.lanes - 1)}, {tile.lanes}")
        self.lanes_bytes = times(f, self.vectors, 64)

    def stand_close(self) -> str:
        """Write whether all lanes of each vector are within two vectors, and whether half of the lanes are used."""
        f, lanes, width = self._f, self._tile.lanes, self.extents.shape["out2"]
        some = f.value(f"select i1 {compare(f, 'sgt', width, 0)}, i64 {width}, i64 1")
        even = compare(f, "eq", f.value(f"urem i64 {lanes}, {some}"), 0)
        ends_even = minus(f, f.value(f"udiv i64 {lanes}, {some}"), 1)
        ends = plus(f, f.value(f"udiv i64 {lanes - 2}, {some}"), 1)
        ends = f.value(f"select i1 {even}, i64 {ends_even}, i64 {ends}")
        whole = compare(f, "eq", f.value(f"urem i64 {some}, {lanes}"), 0)
        ends = f.value(f"select i1 {whole}, i64 0, i64 {ends}")
        gap = times(f, ends, minus(f, self.planes.width, width))
        full = compare(f, "sge", times(f, self.extents.places, 2), times(f, self.vectors, lanes))
        return all_of(f, compare(f, "sle", gap, lanes), full, compare(f, "sgt", self.extents.places, 0))

    def described_bytes(self, images: str) -> str:
        """Write the bytes of the descriptions of so many images' vectors, and of their lanes' numbers."""
        described = rounded_up(self._f, times(self._f, self.vectors, images, VECTOR_BYTES), 64)
        return plus(self._f, described, self.lanes_bytes)


def describe_vectors(tile: Tile) -> Definition:
    """Return `void @dy2st.conv.f32.vectors(lanes, vectors, images, shape)`, for images one after the other."""
    name = f"dy2st.conv.{tile.dtype}.vectors"
    parameters = (("ptr", "%lanes"), ("ptr", "%vectors"), ("i64", "%images"), ("ptr", "%shape"))
    f = LLVMFunction(name, parameters, linkage="internal", also="noinline nounwind")
    extents = GroupExtents(f, tile)
    places = OutputPositions(f, tile, PaddedPlanes(f, tile, extents))
    _number_lanes(f, tile, places)
    result = times(f, extents.group_result, extents.groups, tile.size)
    image = times(f, places.planes.image, tile.size)
    with f.loop("%images", start=1) as b, f.loop(places.vectors) as i:
        first = f.offset("%vectors", times(f, i, VECTOR_BYTES))
        number = plus(f, times(f, b, places.vectors), i)
        there = f.offset("%vectors", times(f, number, VECTOR_BYTES))
        for at, apart in ((0, image), (16, result)):
            moved = plus(f, f.load("i64", f.offset(first, at)), times(f, b, apart))
            f.store("i64", moved, f.offset(there, at))
        for at in (8, 24):
            f.store("i64", f.load("i64", f.offset(first, at)), f.offset(there, at))
    f.ret()
    return Definition(name, f.text())


def _number_lanes(f: LLVMFunction, tile: Tile, places: OutputPositions) -> None:
    """Write the loop over the first image's vectors; rows and places in them move on without a division."""
    lanes, numbers, integer = tile.lanes, _numbers(tile), _integer(tile)
    width, pitch = (
        spread(f, _integers(tile), f.value(f"trunc i64 {n} to {integer}") if integer == "i32" else n)
        for n in (places.extents.shape["out2"], places.planes.width)
    )
    y, x = f.slot(numbers), f.slot(numbers)
    f.store(numbers, "zeroinitializer", y)
    f.store(numbers, f"<{', '.join(f'{integer} {i}' for i in range(lanes))}>", x)
    with f.loop(places.vectors) as i:
        head, body, done = f.label("wrapped"), f.label("wrap"), f.label("placed")
        f.start(head)
        past = f.value(f"icmp sge {numbers} {f.load(numbers, x)}, {width}")
        some = f.value(f"icmp ne i{lanes} {f.value(f'bitcast <{lanes} x i1> {past} to i{lanes}')}, 0")
        f.branch(some, body, done)
        f.start(body)
        back = f.value(f"select <{lanes} x i1> {past}, {numbers} {width}, {numbers} zeroinitializer")
        f.store(numbers, f.value(f"sub {numbers} {f.load(numbers, x)}, {back}"), x)
        f.store(numbers, f.value(f"sub {numbers} {f.load(numbers, y)}, "
                                 f"{f.value(f'sext <{lanes} x i1> {past} to {numbers}')}"), y)  # fmt: skip
        f.jump(head)
        f.start(done)
        row = f.value(f"mul {numbers} {f.load(numbers, y)}, {pitch}")
        place = f.value(f"add {numbers} {row}, {f.load(numbers, x)}")
        first = f.value(f"extractelement {numbers} {place}, i32 0")
        here = f.offset("%lanes", times(f, i, 64))
        moved = f.value(f"sub {numbers} {place}, {spread(f, _integers(tile), first)}")
        f.do(f"store {numbers} {moved}, ptr {here}, align {tile.size}")
        described = f.offset("%vectors", times(f, i, VECTOR_BYTES))
        wide = f.value(f"zext i32 {first} to i64") if integer == "i32" else first
        f.store("i64", times(f, wide, tile.size), described)
        f.store("ptr", here, f.offset(described, 8))
        before = times(f, i, lanes)
        f.store("i64", times(f, before, tile.size), f.offset(described, 16))
        f.store("i64", least(f, minus(f, places.extents.places, before), lanes), f.offset(described, 24))
        step = f"splat ({integer} {lanes})"
        f.store(numbers, f.value(f"add {numbers} {f.load(numbers, x)}, {step}"), x)


def _integer(tile: Tile) -> str:
    return f"i{8 * tile.size}"


def _numbers(tile: Tile) -> str:
    return f"<{tile.lanes} x {_integer(tile)}>"


def _integers(tile: Tile) -> Tile:
    return Tile(_integer(tile), tile.lanes, tile.rows, tile.vectors, tile.few_rows, tile.dots)
