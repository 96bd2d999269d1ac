"""Pooling over 1 to 3 axes: the largest element of each window with its place, the mean, and the mean's transpose.

A row of results is computed a vector at a time where windows move by 1 or 2 along it, else one by one: the same code,
with a vector of one lane. Rows of a window that lie in the padding are left out; in a row, lanes outside read a value
that changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dy2st.runtime.cpu.conv.extents import fill_zeros
from dy2st.runtime.cpu.conv.shape import Shape, axis_fields, inside
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.micro import lane_mask, masked_load, masked_memory, masked_store, span_mask, spread
from dy2st.runtime.cpu.gemm.tile import Tile, tile
from dy2st.runtime.cpu.integers import all_of, compare, least, minus, most, negation, plus, times
from dy2st.runtime.cpu.target import Target
from dy2st.runtime.cpu.threads.fork import RANGE, forked

_MAX = (("ptr", "%x"), ("ptr", "%out"), ("ptr", "%places"), ("ptr", "%shape"))
_VALUES = (("ptr", "%x"), ("ptr", "%out"), ("ptr", "%shape"))
_MEAN = (("ptr", "%x"), ("ptr", "%out"), ("ptr", "%shape"), ("i1", "%exclusive"))
_COST = 300
"""Picoseconds that an element of a window takes."""
_FIELDS = ("batch", "channels", *axis_fields("in", "kernel", "out", "stride", "low", "high"))


@functools.cache
def max_pool_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.max_pool.f32(x, out, places, shape)`: `places` are int64, row-major in the spatial axes."""
    return _by_stride(f"dy2st.max_pool.{dtype}", _MAX, tile(dtype, target), _max_of_window)


@functools.cache
def max_values_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.max_pool.f32.values(x, out, shape)`, where nobody asks for places."""
    return _by_stride(f"dy2st.max_pool.{dtype}.values", _VALUES, tile(dtype, target), _largest_of_window)


@functools.cache
def mean_pool_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.avg_pool.f32(x, out, shape, i1 exclusive)`."""
    return _by_stride(f"dy2st.avg_pool.{dtype}", _MEAN, tile(dtype, target), _mean_of_window)


@functools.cache
def mean_pool_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.avg_pool_grad.f32(x, out, shape, i1 exclusive)`, which writes x from the cotangent `out`."""
    t = tile(dtype, target)
    spread_out = _by_stride(f"dy2st.avg_pool_grad.{dtype}.spread", _MEAN, t, _spread_window)
    f = Function(f"dy2st.avg_pool_grad.{dtype}", _MEAN, linkage="internal", also="nounwind")
    shape = Shape(f, ["batch", "channels", *axis_fields("in")])
    fill_zeros(f, t, "%x", times(f, shape["batch"], shape["channels"], *shape.axes("in")))
    f.call("void", f"@{spread_out.name}", *(f"{kind} {register}" for kind, register in _MEAN))
    f.ret()
    return Definition(f.name, f.text(), (spread_out,))


@dataclass(frozen=True)
class _Window:
    """A window, or as many beside each other as there are lanes: where it begins in the padded input."""

    plane: str
    number: str
    """The place of the first result among all."""
    left: str
    """The results from here to the end of the row."""
    outer: tuple[str, str]
    """The first place along the two outer axes, maybe negative."""
    start: str
    """The first place of the first lane along the last axis, maybe negative."""
    whole: str
    """Whether vectors may be read as they lie: no lane meets padding, and what a read has too much is there."""


class _Walk:
    """The loops over planes, results and the rows of a window."""

    def __init__(self, f: Function, t: Tile):
        self.f, self.tile = f, t
        self.shape = Shape(f, _FIELDS)
        self.planes = times(f, self.shape["batch"], self.shape["channels"])

    @contextmanager
    def windows(self) -> Iterator[_Window]:
        """Write loops over all windows, as many at a time as there are lanes."""
        f, shape = self.f, self.shape
        extents = shape.axes("out")
        with f.loop("%to", start="%from") as plane, f.loop(extents[0]) as z, f.loop(extents[1]) as y:
            row = plus(f, times(f, plane, extents[0]), z)
            row = plus(f, times(f, row, extents[1]), y)
            before = times(f, row, extents[2])
            outer = (self._start(0, z), self._start(1, y))
            with f.loop(extents[2], step=self.tile.lanes) as x:
                left = minus(f, extents[2], x)
                start = self._start(2, x)
                yield _Window(plane, plus(f, before, x), left, outer, start, self._whole(plane, z, y, start, left))

    def _whole(self, plane: str, z: str, y: str, start: str, left: str) -> str:
        """Write whether all windows of a vector are inside their row, and two vectors behind their ends in memory."""
        f, shape = self.f, self.shape
        extents = shape.axes("in")
        reach = times(f, minus(f, least(f, left, self.tile.lanes), 1), shape["stride2"])
        inside_row = compare(f, "sle", plus(f, start, reach, shape["kernel2"]), extents[2])
        row = plus(f, self._start(0, z), minus(f, shape["kernel0"], 1))
        line = plus(f, self._start(1, y), minus(f, shape["kernel1"], 1))
        last = plus(f, times(f, plus(f, times(f, plane, extents[0]), row), extents[1]), line)
        end = plus(f, times(f, last, extents[2]), start, shape["kernel2"], 2 * self.tile.lanes)
        inside_memory = compare(f, "sle", end, times(f, self.planes, *extents))
        return all_of(f, compare(f, "sge", start, 0), inside_row, inside_memory)

    def _start(self, axis: int, out: str) -> str:
        strided = self.f.value(f"mul i64 {out}, {self.shape[f'stride{axis}']}")
        return self.f.value(f"sub i64 {strided}, {self.shape[f'low{axis}']}")

    def end(self, axis: int, start: str) -> str:
        """Write where a window ends, at the latest behind the input."""
        behind = self.f.value(f"add i64 {start}, {self.shape[f'kernel{axis}']}")
        return least(self.f, behind, self.shape[f"in{axis}"])

    @contextmanager
    def rows(self, window: _Window) -> Iterator[tuple[str, str]]:
        """Write loops over the rows of the input that meet a window: their addresses and their numbers in the plane."""
        f, extents = self.f, self.shape.axes("in")
        spans = [(most(f, start, 0), self.end(axis, start)) for axis, start in enumerate(window.outer)]
        plane = times(f, window.plane, *extents)
        with f.loop(spans[0][1], start=spans[0][0]) as z, f.loop(spans[1][1], start=spans[1][0]) as y:
            number = plus(f, times(f, z, extents[1]), y)
            before = times(f, number, extents[2])
            yield f.offset("%x", plus(f, plane, before), self.tile.element), before


def _by_stride(name: str, parameters: Sequence[tuple[str, str]], t: Tile,
               body: Callable[[_Walk, _Window], None]) -> Definition:  # fmt: skip
    """Return the function that takes vectors where windows move by 1 or 2, else elements."""

    def written(symbol: str, lanes: int) -> Definition:
        f = Function(symbol, (*parameters, *RANGE), linkage="internal", also="noinline nounwind")
        walk = _Walk(f, replace(t, lanes=lanes))
        with walk.windows() as window:
            body(walk, window)
        f.ret()
        return Definition(symbol, f.text(), masked_memory(walk.tile) + _masked_places(lanes) if lanes > 1 else ())

    f = Function(name, parameters, linkage="internal", also="nounwind")
    shape = Shape(f, ["batch", "channels", "stride2", *axis_fields("kernel", "out")])
    planes = times(f, shape["batch"], shape["channels"])
    cost = times(f, *shape.axes("kernel"), *shape.axes("out"), _COST)
    short = compare(f, "sle", shape["stride2"], 2)
    one = written(f"{name}.elements", 1)
    choices = (
        [("true", one)] if t.lanes == 1 else [(short, written(f"{name}.vectors", t.lanes)), (negation(f, short), one)]
    )
    needs: list[Definition] = []
    for condition, function in choices:
        with f.when(condition):
            needs += [function, forked(f, function.name, parameters, planes, cost)]
    f.ret()
    return Definition(name, f.text(), tuple(needs))


def _max_of_window(walk: _Walk, window: _Window) -> None:
    """Write the maximum and its place: the first of equals, a NaN before all.

    Places are counted from where the window's first row begins, in 32 bits; where nothing is larger than the value of
    padding, the first element that is no padding stays.
    """
    f, t, mask = walk.f, walk.tile, _mask(walk.tile)
    v, wide, narrow = t.vector, _integers(t.lanes), _integers(t.lanes, 32)
    best, steps = f.slot(v), f.slot(narrow)
    lowest = t.splat("0xFFF0000000000000")
    f.store(v, lowest, best)
    starts, first = _numbers(walk, window.start), _first_row(walk, window)
    before_input = f.value(f"sub {wide} {_wide(walk, '0')}, {starts}")
    f.store(narrow, f.value(f"trunc {wide} {_bounded(walk, 'sgt', before_input, '0')} to {narrow}"), steps)
    with walk.rows(window) as (row, before), f.loop(walk.shape["kernel2"]) as tap:
        found, old = _strided(walk, window, row, tap, lowest), f.load(v, best)
        larger, number = f.value(f"fcmp ugt {v} {found}, {old}"), f.value(f"fcmp ord {v} {old}, {old}")
        better = f.value(f"and {mask} {larger}, {number}")
        step = f.value(f"trunc i64 {plus(f, minus(f, before, first), tap)} to i32")
        here = spread(f, replace(t, dtype="i32"), step)
        f.store(v, f.value(f"select {mask} {better}, {v} {found}, {v} {old}"), best)
        f.store(narrow, f.value(f"select {mask} {better}, {narrow} {here}, {narrow} {f.load(narrow, steps)}"), steps)
    _write(walk, window, "%out", f.load(v, best))
    origin = f.value(f"add {wide} {starts}, {_wide(walk, first)}")
    steps_wide = f.value(f"sext {narrow} {f.load(narrow, steps)} to {wide}")
    _write_places(walk, window, f.value(f"add {wide} {origin}, {steps_wide}"))


def _largest_of_window(walk: _Walk, window: _Window) -> None:
    """Write the maximum: a NaN before all."""
    f, t, mask = walk.f, walk.tile, _mask(walk.tile)
    v, best, lowest = t.vector, f.slot(t.vector), t.splat("0xFFF0000000000000")
    f.store(v, lowest, best)
    with walk.rows(window) as (row, _), f.loop(walk.shape["kernel2"]) as tap:
        found, old = _strided(walk, window, row, tap, lowest), f.load(v, best)
        larger, number = f.value(f"fcmp ugt {v} {found}, {old}"), f.value(f"fcmp ord {v} {old}, {old}")
        better = f.value(f"and {mask} {larger}, {number}")
        f.store(v, f.value(f"select {mask} {better}, {v} {found}, {v} {old}"), best)
    _write(walk, window, "%out", f.load(v, best))


def _mean_of_window(walk: _Walk, window: _Window) -> None:
    """Write the sum of a window over its size."""
    f, t = walk.f, walk.tile
    total = f.slot(t.vector)
    f.store(t.vector, "zeroinitializer", total)
    with walk.rows(window) as (row, _), f.loop(walk.shape["kernel2"]) as tap:
        found = _strided(walk, window, row, tap, "zeroinitializer")
        f.store(t.vector, f.value(f"fadd {t.vector} {f.load(t.vector, total)}, {found}"), total)
    mean = f.value(f"fdiv {t.vector} {f.load(t.vector, total)}, {_size(walk, window)}")
    _write(walk, window, "%out", mean)


def _spread_window(walk: _Walk, window: _Window) -> None:
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


def _spread_tap(walk: _Walk, window: _Window, row: str, at: str, share: str) -> None:
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


def _add(walk: _Walk, row: str, at: str, values: str, mask: str | None) -> None:
    """Write an addition to elements of a row."""
    f, t = walk.f, walk.tile
    place = f.value(f"getelementptr {t.element}, ptr {row}, i64 {at}")
    if mask is None:
        f.store(t.element, f.value(f"fadd {t.vector} {f.load(t.element, place)}, {values}"), place)
    else:
        total = f.value(f"fadd {t.vector} {masked_load(f, t, place, mask)}, {values}")
        masked_store(f, t, total, place, mask)


def _with_gaps(walk: _Walk, values: str, half: int) -> str:
    """Write the values with a zero behind each: the first half of that, or the second."""
    t, first = walk.tile, half * walk.tile.lanes // 2
    places = ", ".join(f"i32 {first + i // 2 if i % 2 == 0 else t.lanes}" for i in range(t.lanes))
    both = f"{t.vector} {values}, {t.vector} zeroinitializer"
    return walk.f.value(f"shufflevector {both}, <{t.lanes} x i32> <{places}>")


def _size(walk: _Walk, window: _Window) -> str:
    """Write by how many elements each window's sum is divided."""
    f, shape, wide = walk.f, walk.shape, _integers(walk.tile.lanes)
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
    outer, starts = times(f, *spans), _numbers(walk, window.start)
    stops = f.value(f"add {wide} {starts}, {_wide(walk, shape['kernel2'])}")
    stops, starts = _bounded(walk, "slt", stops, ends[2][1]), _bounded(walk, "sgt", starts, ends[2][0])
    along = f.value(f"sub {wide} {stops}, {starts}")
    return f.value(f"sitofp {wide} {f.value(f'mul {wide} {along}, {_wide(walk, outer)}')} to {walk.tile.vector}")


def _bounded(walk: _Walk, predicate: str, values: str, bound: str) -> str:
    """Write the values, or the bound where they do not compare so with it."""
    wide, bounds = _integers(walk.tile.lanes), _wide(walk, bound)
    kept = walk.f.value(f"icmp {predicate} {wide} {values}, {bounds}")
    return walk.f.value(f"select {_mask(walk.tile)} {kept}, {wide} {values}, {wide} {bounds}")


def _first_row(walk: _Walk, window: _Window) -> str:
    """Write how many elements of the plane stand before the first row of the input that meets a window."""
    f, extents = walk.f, walk.shape.axes("in")
    z, y = (most(f, start, 0) for start in window.outer)
    return times(f, plus(f, times(f, z, extents[1]), y), extents[2])


def _numbers(walk: _Walk, first: str) -> str:
    """Write first + lane * stride."""
    if walk.tile.lanes == 1:
        return first
    f, lanes, wide = walk.f, walk.tile.lanes, _integers(walk.tile.lanes)
    steps = f"<{', '.join(f'i64 {i}' for i in range(lanes))}>"
    strided = f.value(f"mul {wide} {steps}, {_wide(walk, walk.shape['stride2'])}")
    return f.value(f"add {wide} {strided}, {_wide(walk, first)}")


def _wide(walk: _Walk, scalar: str) -> str:
    """Write an integer into all lanes."""
    return spread(walk.f, replace(walk.tile, dtype="i64"), scalar)


def _strided(walk: _Walk, window: _Window, row: str, tap: str, otherwise: str) -> str:
    """Write the elements of a row that meet a place of the windows, and `otherwise` where those are outside of it."""
    f, t, extent = walk.f, walk.tile, walk.shape["in2"]
    found, at = f.slot(t.vector), plus(f, window.start, tap)
    f.store(t.vector, otherwise, found)
    if t.lanes == 1:
        with f.when(inside(f, at, extent)):
            f.store(t.vector, f.load(t.element, f.offset(row, at, t.element)), found)
        return f.load(t.vector, found)
    for condition, read in ((window.whole, _as_it_lies), (negation(f, window.whole), _contiguous)):
        with f.when(condition):
            first = read(walk, row, at, otherwise)
            f.store(t.vector, first, found)
            with f.when(compare(f, "eq", walk.shape["stride2"], 2)):
                second = read(walk, row, plus(f, at, t.lanes), otherwise)
                evens = ", ".join(f"i32 {2 * i}" for i in range(t.lanes))
                both = f"{t.vector} {first}, {t.vector} {second}"
                f.store(t.vector, f.value(f"shufflevector {both}, <{t.lanes} x i32> <{evens}>"), found)
    return f.load(t.vector, found)


def _as_it_lies(walk: _Walk, row: str, at: str, _: str) -> str:
    """Write a vector of a row from `at` on, all of which is there."""
    place = walk.f.offset(row, at, walk.tile.element)
    return walk.f.value(f"load {walk.tile.vector}, ptr {place}, align {walk.tile.size}")


def _contiguous(walk: _Walk, row: str, at: str, otherwise: str) -> str:
    """Write a vector of a row from `at` on, which may be before it."""
    f, t = walk.f, walk.tile
    mask = span_mask(f, t.lanes, minus(f, 0, at), minus(f, walk.shape["in2"], at))
    place = f.value(f"getelementptr {t.element}, ptr {row}, i64 {at}")
    return f.call(t.vector, f"@llvm.masked.load.{t.suffix}.p0", f"ptr {place}", f"i32 {t.size}", f"{_mask(t)} {mask}",
                  f"{t.vector} {otherwise}")  # fmt: skip


def _write(walk: _Walk, window: _Window, base: str, values: str) -> None:
    f, t = walk.f, walk.tile
    there = f.offset(base, window.number, t.element)
    if t.lanes == 1:
        f.store(t.element, values, there)
    else:
        masked_store(f, t, values, there, lane_mask(f, t.lanes, window.left))


def _write_places(walk: _Walk, window: _Window, places: str) -> None:
    f, lanes = walk.f, walk.tile.lanes
    there = f.offset("%places", window.number, "i64")
    if lanes == 1:
        f.store("i64", places, there)
    else:
        mask = lane_mask(f, lanes, window.left)
        f.call("void", f"@llvm.masked.store.v{lanes}i64.p0", f"{_integers(lanes)} {places}", f"ptr {there}", "i32 8",
               f"<{lanes} x i1> {mask}")  # fmt: skip


def _masked_places(lanes: int) -> tuple[Definition]:
    name = f"llvm.masked.store.v{lanes}i64.p0"
    return (Definition(name, f"declare void @{name}({_integers(lanes)}, ptr, i32 immarg, <{lanes} x i1>)"),)


def _integers(lanes: int, bits: int = 64) -> str:
    return f"i{bits}" if lanes == 1 else f"<{lanes} x i{bits}>"


def _mask(t: Tile) -> str:
    return "i1" if t.lanes == 1 else f"<{t.lanes} x i1>"
