"""The windows of an image as a matrix, one row a channel and place of the kernel, one column a place of the result.

`gather` writes a block of it from an image, `scatter` adds a block to an image: each other's transposes. Neither makes
the whole matrix, which is larger than the image by the size of the kernel (K. Chellapilla, S. Puri and P. Simard, "High
performance convolutional neural networks for document processing", 2006).
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.records import record
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import ConvShape, axis_fields, inside, source
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_load, masked_memory, masked_store, span_mask
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import (
    all_of,
    any_of,
    compare,
    least,
    minus,
    most,
    negation,
    plus,
    times,
)

_PARAMETERS = (
    ("ptr", "%image"), ("ptr", "%block"), ("i64", "%row_bytes"), ("i64", "%first_row"), ("i64", "%rows"),
    ("i64", "%first"), ("i64", "%count"), ("ptr", "%shape"),
)  # fmt: skip
"""Rows `first_row` .. + `rows` and columns `first` .. + `count` of the matrix; a row of the block has room for one more
vector than `count`, and so has the block behind its last."""


def gather(tile: Tile) -> Definition:
    """Return the function that writes a block of the matrix from an image."""
    return _walk(tile, "gather", gather_run)


def scatter(tile: Tile) -> Definition:
    """Return the function that adds a block of the matrix to an image."""
    return _walk(tile, "scatter", _scatter_run)


@record(frozen=True)
class ColumnRun:
    """Columns that share a row of the image: `count` places, of which [low, high) lie inside."""

    image_row: str
    block: str
    start: str
    """The place in the row of the image that the first column meets, maybe outside."""
    count: str
    low: str
    high: str
    stride: str


_WriteRun = Callable[[LLVMFunction, Tile, ColumnRun], None]


def _walk(tile: Tile, what: str, run: _WriteRun) -> Definition:
    """Return the function that visits the rows of a block, and in each the columns by rows of the image."""
    name = f"dy2st.conv.{tile.dtype}.{what}"
    f = LLVMFunction(name, _PARAMETERS, linkage="internal", also="noinline nounwind")
    shape = ConvShape(f, axis_fields("in", "kernel", "out", "stride", "low", "dilation"))
    with f.loop("%rows") as i:
        number = plus(f, i, "%first_row")
        taps: list[str] = []
        for axis in (2, 1, 0):
            taps.insert(0, f.value(f"urem i64 {number}, {shape[f'kernel{axis}']}"))
            number = f.value(f"udiv i64 {number}, {shape[f'kernel{axis}']}")
        channel = number
        block = f.offset("%block", times(f, i, "%row_bytes"))
        _runs(f, tile, shape, (channel, taps, block), run)
    f.ret()
    return Definition(name, f.text(), masked_memory(tile) if tile.lanes > 1 else ())


def _runs(f: LLVMFunction, tile: Tile, shape: ConvShape, row: tuple[str, list[str], str], run: _WriteRun) -> None:
    """Write the loop over the runs of one row of the matrix."""
    channel, taps, block = row
    along, column = f.slot("i64"), [f.slot("i64") for _ in range(3)]
    number = "%first"
    for axis in (2, 1, 0):
        f.store("i64", f.value(f"urem i64 {number}, {shape[f'out{axis}']}"), column[axis])
        number = f.value(f"udiv i64 {number}, {shape[f'out{axis}']}")
    f.store("i64", "0", along)
    head, body, done = f.label("runs"), f.label("run"), f.label("ran")
    f.start(head)
    at = f.load("i64", along)
    f.branch(compare(f, "slt", at, "%count"), body, done)
    f.start(body)
    z, y, x = (f.load("i64", place) for place in column)
    count = least(f, minus(f, shape["out2"], x), minus(f, "%count", at))
    iz, iy = source(f, shape, 0, z, taps[0]), source(f, shape, 1, y, taps[1])
    exists = all_of(f, inside(f, iz, shape["in0"]), inside(f, iy, shape["in1"]))
    start = source(f, shape, 2, x, taps[2])
    low, high = valid_run(f, start, count, shape["in2"], shape["stride2"])
    low = f.value(f"select i1 {exists}, i64 {low}, i64 0")
    high = f.value(f"select i1 {exists}, i64 {high}, i64 0")
    extents = shape.axes("in")
    rows_before = plus(f, times(f, channel, extents[0]), iz)
    rows_before = plus(f, times(f, rows_before, extents[1]), iy)
    # not inbounds: a row that does not exist has no valid elements, but an address
    elements_before = times(f, rows_before, extents[2])
    image_row = f.value(f"getelementptr {tile.element}, ptr %image, i64 {elements_before}")
    there = f.offset(block, at, tile.element)
    run(f, tile, ColumnRun(image_row, there, start, count, low, high, shape["stride2"]))
    f.store("i64", plus(f, at, count), along)
    f.store("i64", "0", column[2])
    y_next = plus(f, y, 1)
    wraps = compare(f, "eq", y_next, shape["out1"])
    f.store("i64", f.value(f"select i1 {wraps}, i64 0, i64 {y_next}"), column[1])
    f.store("i64", f.value(f"add i64 {z}, {f.value(f'zext i1 {wraps} to i64')}"), column[0])
    f.jump(head)
    f.start(done)


def valid_run(f: LLVMFunction, start: str, count: str, extent: str, stride: str) -> tuple[str, str]:
    """Write the t in [0, count) with 0 <= start + t stride < extent: a first one and one past the last."""
    before = most(f, minus(f, 0, start), 0)
    behind = most(f, minus(f, extent, start), 0)
    ends = [f.slot("i64") for _ in range(2)]
    f.store("i64", before, ends[0])
    f.store("i64", behind, ends[1])
    with f.when(compare(f, "ne", stride, 1)):
        rounding = minus(f, stride, 1)
        for value, end in zip((before, behind), ends, strict=True):
            f.store("i64", f.value(f"udiv i64 {plus(f, value, rounding)}, {stride}"), end)
    low, high = (least(f, f.load("i64", end), count) for end in ends)
    return low, most(f, high, low)


def gather_run(f: LLVMFunction, tile: Tile, run: ColumnRun) -> None:
    """Write the elements inside and zeros elsewhere; behind them, what is written over later."""
    t, v, lanes = tile.element, tile.vector, tile.lanes

    def store(value: str, i: str) -> None:
        f.do(f"store {v} {value}, ptr {f.offset(run.block, i, t)}, align {tile.size}")

    dense, halved = compare(f, "eq", run.stride, 1), compare(f, "eq", run.stride, 2)
    apart = negation(f, any_of(f, dense, halved))
    with f.when(apart if lanes > 1 else "true"), f.loop(run.count) as i:
        value = f.slot(t)
        f.store(t, "0.0", value)
        valid = all_of(f, compare(f, "sge", i, run.low), compare(f, "slt", i, run.high))
        with f.when(valid):
            place = plus(f, run.start, times(f, i, run.stride))
            f.store(t, f.load(t, f.offset(run.image_row, place, t)), value)
        f.store(t, f.load(t, value), f.offset(run.block, i, t))
    if lanes == 1:
        return
    first = f.value(f"getelementptr {t}, ptr {run.image_row}, i64 {run.start}")
    with f.when(dense), f.loop(run.count, step=lanes) as i:
        there = f.value(f"getelementptr {t}, ptr {first}, i64 {i}")
        value = masked_load(f, tile, there, _lanes_of(f, tile, run, i))
        store(value, i)
    with f.when(halved), f.loop(run.count, step=lanes) as i:
        store(_every_second(f, tile, run, first, i), i)


def _every_second(f: LLVMFunction, tile: Tile, run: ColumnRun, first: str, i: str) -> str:
    """Write the elements of a run of stride 2 from number i on."""
    lanes, halves = tile.lanes, list[str]()
    low = times(f, minus(f, run.low, i), 2)
    high = minus(f, times(f, minus(f, run.high, i), 2), 1)
    for half in range(2):
        there = f.value(f"getelementptr {tile.element}, ptr {first}, i64 {plus(f, times(f, i, 2), half * lanes)}")
        mask = span_mask(f, lanes, minus(f, low, half * lanes), minus(f, high, half * lanes))
        halves.append(f"{tile.vector} {masked_load(f, tile, there, mask)}")
    evens = ", ".join(f"i32 {2 * lane}" for lane in range(lanes))
    return f.value(f"shufflevector {', '.join(halves)}, <{lanes} x i32> <{evens}>")


def _scatter_run(f: LLVMFunction, tile: Tile, run: ColumnRun) -> None:
    """Add the elements that lie inside."""
    t, v, lanes = tile.element, tile.vector, tile.lanes
    dense = compare(f, "eq", run.stride, 1)
    with f.when(negation(f, dense) if lanes > 1 else "true"), f.loop(run.high, start=run.low) as i:
        place = plus(f, run.start, times(f, i, run.stride))
        there = f.offset(run.image_row, place, t)
        f.store(t, f.value(f"fadd {t} {f.load(t, there)}, {f.load(t, f.offset(run.block, i, t))}"), there)
    if lanes == 1:
        return
    with f.when(dense):
        first = f.value(f"getelementptr {t}, ptr {run.image_row}, i64 {run.start}")
        with f.loop(run.count, step=lanes) as i:
            there, mask = f.value(f"getelementptr {t}, ptr {first}, i64 {i}"), _lanes_of(f, tile, run, i)
            term = f.value(f"load {v}, ptr {f.offset(run.block, i, t)}, align {tile.size}")
            masked_store(f, tile, f.value(f"fadd {v} {masked_load(f, tile, there, mask)}, {term}"), there, mask)


def _lanes_of(f: LLVMFunction, tile: Tile, run: ColumnRun, i: str) -> str:
    """Write the mask of the lanes t with low <= i + t < high."""
    return span_mask(f, tile.lanes, minus(f, run.low, i), minus(f, run.high, i))
