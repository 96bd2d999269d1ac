"""Pooling over 1 to 3 axes: the largest element of each window with its place, the mean, and the mean's transpose.

A row of results is computed a vector at a time where windows move by 1 or 2 along it, else one by one: the same code,
with a vector of one lane (pool_windows.py).
"""

from __future__ import annotations

import functools

from dy2st.records import replace
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.conv.common.extents import fill_zeros
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import ConvShape, axis_fields, inside
from dy2st.runtime.backends.cpu.conv.pool_windows import (
    PoolLoops,
    PoolWindow,
    bounded,
    by_stride,
    in_all_lanes,
    integer_type,
    lane_places,
    mask_type,
    strided,
    write_places,
    write_results,
)
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_store, span_mask, spread
from dy2st.runtime.backends.cpu.gemm.tiling import tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, negation, plus, times

_MAX = (("ptr", "%x"), ("ptr", "%out"), ("ptr", "%places"), ("ptr", "%shape"))
_VALUES = (("ptr", "%x"), ("ptr", "%out"), ("ptr", "%shape"))
_MEAN = (("ptr", "%x"), ("ptr", "%out"), ("ptr", "%shape"), ("i1", "%exclusive"))


@functools.cache
def max_pool_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.max_pool.f32(x, out, places, shape)`: `places` are int64, row-major in the spatial axes."""
    return by_stride(f"dy2st.max_pool.{dtype}", _MAX, tile(dtype, target), _max_of_window)


@functools.cache
def max_values_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.max_pool.f32.values(x, out, shape)`, where nobody asks for places."""
    return by_stride(f"dy2st.max_pool.{dtype}.values", _VALUES, tile(dtype, target), _largest_of_window)


@functools.cache
def mean_pool_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.avg_pool.f32(x, out, shape, i1 exclusive)`."""
    return by_stride(f"dy2st.avg_pool.{dtype}", _MEAN, tile(dtype, target), _mean_of_window)


@functools.cache
def mean_pool_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.avg_pool_grad.f32(x, out, shape, i1 exclusive)`, which writes x from the cotangent `out`."""
    t = tile(dtype, target)
    spread_out = by_stride(f"dy2st.avg_pool_grad.{dtype}.spread", _MEAN, t, _spread_window)
    f = LLVMFunction(f"dy2st.avg_pool_grad.{dtype}", _MEAN, linkage="internal", also="nounwind")
    shape = ConvShape(f, ["batch", "channels", *axis_fields("in")])
    fill_zeros(f, t, "%x", times(f, shape["batch"], shape["channels"], *shape.axes("in")))
    f.call("void", f"@{spread_out.name}", *(f"{kind} {register}" for kind, register in _MEAN))
    f.ret()
    return Definition(f.name, f.text(), (spread_out,))


def _max_of_window(walk: PoolLoops, window: PoolWindow) -> None:
    """Write the maximum and its place: the first of equals, a NaN before all.

    Places are counted from where the window's first row begins, in 32 bits; where nothing is larger than the value of
    padding, the first element that is no padding stays.
    """
    f, t, mask = walk.f, walk.tile, mask_type(walk.tile)
    v, wide, narrow = t.vector, integer_type(t.lanes), integer_type(t.lanes, 32)
    best, steps = f.slot(v), f.slot(narrow)
    lowest = t.splat("0xFFF0000000000000")
    f.store(v, lowest, best)
    starts, first = lane_places(walk, window.start), _first_row(walk, window)
    before_input = f.value(f"sub {wide} {in_all_lanes(walk, '0')}, {starts}")
    f.store(narrow, f.value(f"trunc {wide} {bounded(walk, 'sgt', before_input, '0')} to {narrow}"), steps)
    with walk.rows(window) as (row, before), f.loop(walk.shape["kernel2"]) as tap:
        found, old = strided(walk, window, row, tap, lowest), f.load(v, best)
        larger, number = f.value(f"fcmp ugt {v} {found}, {old}"), f.value(f"fcmp ord {v} {old}, {old}")
        better = f.value(f"and {mask} {larger}, {number}")
        step = f.value(f"trunc i64 {plus(f, minus(f, before, first), tap)} to i32")
        here = spread(f, replace(t, dtype="i32"), step)
        f.store(v, f.value(f"select {mask} {better}, {v} {found}, {v} {old}"), best)
        f.store(narrow, f.value(f"select {mask} {better}, {narrow} {here}, {narrow} {f.load(narrow, steps)}"), steps)
    write_results(walk, window, "%out", f.load(v, best))
    origin = f.value(f"add {wide} {starts}, {in_all_lanes(walk, first)}")
    steps_wide = f.value(f"sext {narrow} {f.load(narrow, steps)} to {wide}")
    write_places(walk, window, f.value(f"add {wide} {origin}, {steps_wide}"))


def _largest_of_window(walk: PoolLoops, window: PoolWindow) -> None:
    """Write the maximum: a NaN before all."""
    f, t, mask = walk.f, walk.tile, mask_type(walk.tile)
    v, best, lowest = t.vector, f.slot(t.vector), t.splat("0xFFF0000000000000")
    f.store(v, lowest, best)
    with walk.rows(window) as (row, _), f.loop(walk.shape["kernel2"]) as tap:
        found, old = strided(walk, window, row, tap, lowest), f.load(v, best)
        larger, number = f.value(f"fcmp ugt {v} {found}, {old}"), f.value(f"fcmp ord {v} {old}, {old}")
        better = f.value(f"and {mask} {larger}, {number}")
        f.store(v, f.value(f"select {mask} {better}, {v} {found}, {v} {old}"), best)
    write_results(walk, window, "%out", f.load(v, best))


def _mean_of_window(walk: PoolLoops, window: PoolWindow) -> None:
    """Write the sum of a window over its size."""
    f, t = walk.f, walk.tile
    total = f.slot(t.vector)
    f.store(t.vector, "zeroinitializer", total)
    with walk.rows(window) as (row, _), f.loop(walk.shape["kernel2"]) as tap:
        found = strided(walk, window, row, tap, "zeroinitializer")
        f.store(t.vector, f.value(f"fadd {t.vector} {f.load(t.vector, total)}, {found}"), total)
    mean = f.value(f"fdiv {t.vector} {f.load(t.vector, total)}, {_size(walk, window)}")
    write_results(walk, window, "%out", mean)


def _spread_window(walk: PoolLoops, window: PoolWindow) -> None:
    """Write an equal share of the cotangent of each window onto its elements."""
    f, t = walk.f, walk.tile
    place = f.offset("%out", window.number, t.element)
    if t.lanes == 1:
        cotangent = f.load(t.element, place)
    else:
        cotangent = masked_load(f, t, place, lane_mask(f, t.lanes, window.left))
    share = f.value(f"fdiv {t.vector} {cotangent}, {_size(walk, window)}")
    with walk.rows(window) as (row, _), f.loop(walk.shape["kernel2"]) as tap:
        _spread_tap(walk, window, row, plus(f, window.start, tap), share)


def _spread_tap(walk: PoolLoops, window: PoolWindow, row: str, at: str, share: str) -> None:
    """Write the shares onto the elements at, at + stride, ... that lie in the row."""
    f, t, extent = walk.f, walk.tile, walk.shape["in2"]
    if t.lanes == 1:
        with f.when(inside(f, at, extent)):
            _add(walk, row, at, share, None)
        return
    before, room = minus(f, 0, at), minus(f, extent, at)
    dense = compare(f, "eq", walk.shape["stride2"], 1)
    with f.when(dense):
        _add(walk, row, at, share, span_mask(f, t.lanes, before, least(f, room, window.left)))
    with f.when(negation(f, dense)):
        end = least(f, room, times(f, window.left, 2))
        for half in range(2):
            past = half * t.lanes
            mask = span_mask(f, t.lanes, minus(f, before, past), minus(f, end, past))
            _add(walk, row, plus(f, at, past), _with_gaps(walk, share, half), mask)


def _add(walk: PoolLoops, row: str, at: str, values: str, mask: str | None) -> None:
    """Write an addition to elements of a row."""
    f, t = walk.f, walk.tile
    place = f.value(f"getelementptr {t.element}, ptr {row}, i64 {at}")
    if mask is None:
        f.store(t.element, f.value(f"fadd {t.vector} {f.load(t.element, place)}, {values}"), place)
    else:
        total = f.value(f"fadd {t.vector} {masked_load(f, t, place, mask)}, {values}")
        masked_store(f, t, total, place, mask)


def _with_gaps(walk: PoolLoops, values: str, half: int) -> str:
    """Write the values with a zero behind each: the first half of that, or the second."""
    t, first = walk.tile, half * walk.tile.lanes // 2
    places = ", ".join(f"i32 {first + i // 2 if i % 2 == 0 else t.lanes}" for i in range(t.lanes))
    both = f"{t.vector} {values}, {t.vector} zeroinitializer"
    return walk.f.value(f"shufflevector {both}, <{t.lanes} x i32> <{places}>")


def _size(walk: PoolLoops, window: PoolWindow) -> str:
    """Write by how many elements each window's sum is divided."""
    f, shape, wide = walk.f, walk.shape, integer_type(walk.tile.lanes)
    ends: list[tuple[str, str]] = []
    for axis in range(3):
        padding = minus(f, 0, shape[f"low{axis}"])
        behind = plus(f, shape[f"in{axis}"], shape[f"high{axis}"])
        begin = f.value(f"select i1 %exclusive, i64 0, i64 {padding}")
        end = f.value(f"select i1 %exclusive, i64 {shape[f'in{axis}']}, i64 {behind}")
        ends.append((begin, end))
    spans: list[str] = []
    for axis, start in enumerate(window.outer):
        stop = least(f, plus(f, start, shape[f"kernel{axis}"]), ends[axis][1])
        spans.append(minus(f, stop, most(f, start, ends[axis][0])))
    outer, starts = times(f, *spans), lane_places(walk, window.start)
    stops = f.value(f"add {wide} {starts}, {in_all_lanes(walk, shape['kernel2'])}")
    stops, starts = bounded(walk, "slt", stops, ends[2][1]), bounded(walk, "sgt", starts, ends[2][0])
    along = f.value(f"sub {wide} {stops}, {starts}")
    return f.value(f"sitofp {wide} {f.value(f'mul {wide} {along}, {in_all_lanes(walk, outer)}')} to {walk.tile.vector}")


def _first_row(walk: PoolLoops, window: PoolWindow) -> str:
    """Write how many elements of the plane stand before the first row of the input that meets a window."""
    f, extents = walk.f, walk.shape.axes("in")
    z, y = (most(f, start, 0) for start in window.outer)
    return times(f, plus(f, times(f, z, extents[1]), y), extents[2])
