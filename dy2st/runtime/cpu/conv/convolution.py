"""Convolution over 1 to 3 axes and its two transposes, as products of matrices with blocks of windows (columns.py).

    conv               out[b, g] = w[g] columns(x[b, g])
    conv_input_grad    columns(x[b, g]) += w[g]^T c[b, g]
    conv_weight_grad   w[g] += c[b, g] columns(x[b, g])^T

A kernel of one place that takes every element leaves nothing to lay out: its columns are the image.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.cpu.conv.columns import gather, scatter
from dy2st.runtime.cpu.conv.direct import applies, direct, direct_scratch
from dy2st.runtime.cpu.conv.direct_weights import direct_weights, many_places
from dy2st.runtime.cpu.conv.extents import PARAMETERS, Extents, each_group, fill_zeros
from dy2st.runtime.cpu.conv.few import few, few_places, few_scratch
from dy2st.runtime.cpu.conv.places import permutes
from dy2st.runtime.cpu.conv.shape import FIELDS, Shape, axis_fields
from dy2st.runtime.cpu.conv.sliding import EXTENTS, sliding, sliding_scratch, turned_filters
from dy2st.runtime.cpu.conv.sliding_weights import sliding_weights
from dy2st.runtime.cpu.conv.together import small_places, together, together_bytes, together_images, together_weights
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.matmul import matmul_kernel, scratch_kernel
from dy2st.runtime.cpu.gemm.panels import panels
from dy2st.runtime.cpu.gemm.tile import Tile, tile
from dy2st.runtime.cpu.integers import all_of, any_of, compare, least, minus, most, negation, plus, rounded_down, times
from dy2st.runtime.cpu.target import Target

_MANY_VECTORS = 24
"""From so many vectors of places on, dot products beat laying windows out (measured)."""


@functools.cache
def convolution_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv.f32(x, w, out, shape, scratch)`."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv.{dtype}", PARAMETERS, linkage="internal", also="nounwind")
    extents = Extents(f, t)
    multiply, whole, windows, slide = panels(t), matmul_kernel(dtype, False, False, target), gather(t), sliding(t)
    side_by_side, by_windows, by_places = together(t), few(t), direct(t) if permutes(target) else None
    whole_image, slides = _takes_every_element(f, extents.shape), _slides(f, extents.shape)
    with f.when(few_places(f, extents)):
        f.call("void", f"@{by_windows.name}", *(f"ptr {register}" for _, register in PARAMETERS))
        f.ret()
    if by_places is not None:
        with f.when(all_of(f, applies(f, t, extents), negation(f, whole_image))):
            f.call("void", f"@{by_places.name}", *(f"ptr {register}" for _, register in PARAMETERS))
            f.ret()
    _small_images(f, t, extents, side_by_side)
    laid_out = negation(f, any_of(f, whole_image, slides))
    slides = all_of(f, slides, negation(f, whole_image))
    with each_group(f, t, extents) as (x, w, c):
        with f.when(slides):
            f.call("void", f"@{slide.name}", f"ptr {x}", f"ptr {w}", f"ptr {c}", "ptr %scratch",
                   *_sliding_extents(extents))  # fmt: skip
        with f.when(whole_image):
            f.call("void", f"@{whole.name}", f"ptr {w}", f"i64 {extents.depth}", f"ptr {x}", f"i64 {extents.places}",
                   f"ptr {c}", f"i64 {extents.places}", f"i64 {extents.filters}", f"i64 {extents.places}",
                   f"i64 {extents.depth}", "ptr %scratch", "i1 false")  # fmt: skip
        with f.when(laid_out):
            with _blocks(f, t, extents) as (j, columns, p, steps):
                _call_windows(f, windows, x, extents, (p, steps, j, columns))
                later = compare(f, "sgt", p, 0)
                c_row = times(f, extents.places, t.size)
                w_row = times(f, extents.depth, t.size)
                f.call("void", f"@{multiply.name}", f"ptr {f.offset(w, p, t.element)}", f"i64 {w_row}", f"i64 {t.size}",
                       "ptr %scratch", f"i64 {extents.row_bytes}", f"ptr {f.offset(c, j, t.element)}", f"i64 {c_row}",
                       f"i64 {extents.filters}", f"i64 {columns}", f"i64 {steps}", f"i1 {later}",
                       "i1 false")  # fmt: skip
            _zero_without_steps(f, t, extents, c)
    f.ret()
    needs = (multiply, whole, windows, slide, side_by_side, by_windows, *([by_places] if by_places is not None else []))
    return Definition(f.name, f.text(), needs)


@functools.cache
def input_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv_input_grad.f32(x, w, c, shape, scratch)`, which writes x."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv_input_grad.{dtype}", PARAMETERS, linkage="internal", also="nounwind")
    extents = Extents(f, t)
    multiply, windows = matmul_kernel(dtype, True, False, target), scatter(t)
    slide, turned, side_by_side = sliding(t), turned_filters(t), together_images(t, target)
    by_places = direct(t) if permutes(target) else None
    if by_places is not None:
        with f.when(_slides(f, extents.shape)):
            _turn_back(f, t, extents, by_places, turned)
    _small_images(f, t, extents, side_by_side)
    with f.when(_slides(f, extents.shape)):
        _slide_back(f, t, extents, slide, turned)
        f.ret()
    pixels = times(f, extents.batch, extents.groups, extents.image)
    fill_zeros(f, t, "%x", pixels)
    behind = f.offset("%scratch", extents.row_bytes * t.depth + 64)
    with each_group(f, t, extents) as (x, w, c), _blocks(f, t, extents) as (j, columns, p, steps):
        f.call("void", f"@{multiply.name}", f"ptr {f.offset(w, p, t.element)}", f"i64 {extents.depth}",
               f"ptr {f.offset(c, j, t.element)}", f"i64 {extents.places}", "ptr %scratch",
               f"i64 {extents.row_bytes // t.size}", f"i64 {steps}", f"i64 {columns}", f"i64 {extents.filters}",
               f"ptr {behind}", "i1 false")  # fmt: skip
        _call_windows(f, windows, x, extents, (p, steps, j, columns))
    f.ret()
    needs = (multiply, windows, slide, turned, side_by_side, *([by_places] if by_places is not None else []))
    return Definition(f.name, f.text(), needs)


@functools.cache
def weight_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv_weight_grad.f32(x, w, c, shape, scratch)`, which writes w."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv_weight_grad.{dtype}", PARAMETERS, linkage="internal", also="nounwind")
    extents = Extents(f, t)
    multiply, windows, slide = matmul_kernel(dtype, False, True, target), gather(t), sliding_weights(t)
    side_by_side = together_weights(t, target)
    by_places = direct_weights(t) if permutes(target) else None
    fill_zeros(f, t, "%w", times(f, extents.groups, extents.group_filters))
    if by_places is not None:
        with f.when(all_of(f, applies(f, t, extents), many_places(f, t, extents))):
            f.call("void", f"@{by_places.name}", *(f"ptr {register}" for _, register in PARAMETERS))
            f.ret()
    _small_images(f, t, extents, side_by_side)
    with f.when(all_of(f, _slides(f, extents.shape), _dots_pay(f, t, extents))):
        with each_group(f, t, extents) as (x, w, c):
            f.call("void", f"@{slide.name}", f"ptr {x}", f"ptr {w}", f"ptr {c}", "ptr %scratch",
                   *_sliding_extents(extents))  # fmt: skip
        f.ret()
    behind = f.offset("%scratch", extents.row_bytes * t.depth + 64)
    with each_group(f, t, extents) as (x, w, c), _blocks(f, t, extents) as (j, columns, p, steps):
        _call_windows(f, windows, x, extents, (p, steps, j, columns))
        f.call("void", f"@{multiply.name}", f"ptr {f.offset(c, j, t.element)}", f"i64 {extents.places}", "ptr %scratch",
               f"i64 {extents.row_bytes // t.size}", f"ptr {f.offset(w, p, t.element)}", f"i64 {extents.depth}",
               f"i64 {extents.filters}", f"i64 {steps}", f"i64 {columns}", f"ptr {behind}", "i1 true")  # fmt: skip
    f.ret()
    needs = (multiply, windows, slide, side_by_side, *([by_places] if by_places is not None else []))
    return Definition(f.name, f.text(), needs)


@functools.cache
def convolution_scratch(dtype: str, target: Target) -> Definition:
    """Return `i64 @dy2st.conv.f32.scratch(ptr shape)`: the bytes that any of the three functions needs."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv.{dtype}.scratch", (("ptr", "%shape"),), "i64", linkage="internal", also="nounwind")
    extents = Extents(f, t)
    block = extents.row_bytes * t.depth + 64
    needs: list[Definition] = []
    worst = "0"
    rows, columns = least(f, extents.depth, t.depth), least(f, extents.places, t.width)
    for transposes, (m, n, k) in (
        ((False, False), (extents.filters, extents.places, extents.depth)),
        ((True, False), (rows, columns, extents.filters)), ((False, True), (extents.filters, rows, columns)),
    ):  # fmt: skip
        scratch = scratch_kernel(dtype, *transposes, target)
        needs.append(scratch)
        size = f.call("i64", f"@{scratch.name}", f"i64 {m}", f"i64 {n}", f"i64 {k}")
        worst = most(f, size, worst)
    worst = plus(f, worst, block)
    slides = sliding_scratch(t)
    room = f.call("i64", f"@{slides.name}", *_sliding_extents(extents))
    room = most(f, worst, room)
    back = f.call("i64", f"@{slides.name}", *_sliding_back_extents(f, extents))
    needs.append(slides)
    room = most(f, room, plus(f, back, _turned_bytes(f, t, extents)))
    room = most(f, room, f.value(f"select i1 {few_places(f, extents)}, i64 {few_scratch(f, t, extents)}, i64 0"))
    if permutes(target):
        by_places = direct_scratch(t)
        needs.append(by_places)
        room = most(f, room, f.call("i64", f"@{by_places.name}", "ptr %shape"))
        back = f.call("i64", f"@{by_places.name}", f"ptr {_turned_row(f, extents)}")
        room = most(f, room, plus(f, back, times(f, _turned_bytes(f, t, extents), extents.groups)))
    small = compare(f, "sle", extents.places, small_places(t))
    f.ret("i64", most(f, room, f.value(f"select i1 {small}, i64 {together_bytes(f, t, extents)}, i64 0")))
    return Definition(f.name, f.text(), tuple(needs))


@contextmanager
def _blocks(f: Function, t: Tile, extents: Extents) -> Iterator[tuple[str, str, str, str]]:
    """Write loops over blocks of the matrix of windows: first column, columns, first row, rows."""
    with f.loop(extents.places, step=t.width) as j, f.loop(extents.depth, step=t.depth) as p:
        columns = least(f, minus(f, extents.places, j), t.width)
        steps = least(f, minus(f, extents.depth, p), t.depth)
        yield j, columns, p, steps


def _call_windows(f: Function, windows: Definition, x: str, extents: Extents, block: tuple[str, ...]) -> None:
    row, rows, column, columns = block
    f.call("void", f"@{windows.name}", f"ptr {x}", "ptr %scratch", f"i64 {extents.row_bytes}", f"i64 {row}",
           f"i64 {rows}", f"i64 {column}", f"i64 {columns}", "ptr %shape")  # fmt: skip


def _takes_every_element(f: Function, shape: Shape) -> str:
    """Write whether the columns are the image: kernel 1, stride 1, and a result of the image's extents."""
    conditions = [compare(f, "eq", shape[name], 1) for name in axis_fields("kernel", "stride")]
    conditions += [compare(f, "eq", shape[name], 0) for name in axis_fields("low")]
    pairs = zip(shape.axes("in"), shape.axes("out"), strict=True)
    return all_of(f, *conditions, *(compare(f, "eq", n, m) for n, m in pairs))


def _small_images(f: Function, t: Tile, extents: Extents, side_by_side: Definition) -> None:
    """Write the case of several images with few places each."""
    few = compare(f, "sle", extents.places, small_places(t))
    several, some = compare(f, "sgt", extents.batch, 1), compare(f, "sgt", extents.depth, 0)
    with f.when(all_of(f, few, several, some)):
        f.call("void", f"@{side_by_side.name}", *(f"ptr {register}" for _, register in PARAMETERS))
        f.ret()


def _slides(f: Function, shape: Shape) -> str:
    """Write whether windows move by 1 over at most two axes, and filters have elements."""
    needed = [compare(f, "eq", shape[name], 1) for name in ("in0", "kernel0", "out0", "stride1", "stride2")]
    needed.append(compare(f, "eq", shape["low0"], 0))
    some = [compare(f, "sgt", shape[name], 0) for name in ("channels", "kernel1", "kernel2")]
    return all_of(f, *needed, *some)


def _dots_pay(f: Function, t: Tile, extents: Extents) -> str:
    """Write whether lines fill at least half of their vectors, and are many."""
    count = extents.shape["out2"]
    whole = rounded_down(f, plus(f, count, t.lanes - 1), t.lanes)
    full = compare(f, "sle", whole, times(f, count, 2))
    vectors = f.value(f"sdiv i64 {times(f, extents.shape['out1'], whole)}, {t.lanes}")
    return all_of(f, full, compare(f, "sge", vectors, _MANY_VECTORS))


def _sliding_extents(extents: Extents) -> list[str]:
    """Return the operands of one group of one image for sliding.py."""
    own = {"channels": extents.channels, "filters": extents.filters}
    return [f"i64 {own[name] if name in own else extents.shape[name]}" for name in EXTENTS]


def _slide_back(f: Function, t: Tile, extents: Extents, slide: Definition, turned: Definition) -> None:
    """Write the gradient by the image as a convolution of the cotangent, where windows move by 1."""
    kernel = times(f, *extents.shape.axes("kernel"))
    behind = f.offset("%scratch", _turned_bytes(f, t, extents))
    operands = _sliding_back_extents(f, extents)
    with f.loop(extents.groups) as g:
        w = f.offset("%w", times(f, g, extents.group_filters), t.element)
        f.call("void", f"@{turned.name}", f"ptr {w}", "ptr %scratch", f"i64 {extents.filters}",
               f"i64 {extents.channels}", f"i64 {kernel}")  # fmt: skip
        with f.loop(extents.batch) as b:
            number = plus(f, times(f, b, extents.groups), g)
            x = f.offset("%x", times(f, number, extents.image), t.element)
            c = f.offset("%c", times(f, number, extents.group_result), t.element)
            f.call("void", f"@{slide.name}", f"ptr {c}", "ptr %scratch", f"ptr {x}", f"ptr {behind}", *operands)


def _turn_back(f: Function, t: Tile, extents: Extents, by_places: Definition, turned: Definition) -> None:
    """Write the gradient by the image as a convolution of the cotangent with all filters turned, where that applies."""
    row = _turned_row(f, extents)
    with f.when(applies(f, t, Extents(f, t, row))):
        kernel = times(f, *extents.shape.axes("kernel"))
        with f.loop(extents.groups) as g:
            w, there = (f.offset(base, times(f, g, extents.group_filters), t.element) for base in ("%w", "%scratch"))
            f.call("void", f"@{turned.name}", f"ptr {w}", f"ptr {there}", f"i64 {extents.filters}",
                   f"i64 {extents.channels}", f"i64 {kernel}")  # fmt: skip
        behind = f.offset("%scratch", times(f, _turned_bytes(f, t, extents), extents.groups))
        f.call("void", f"@{by_places.name}", "ptr %c", "ptr %scratch", "ptr %x", f"ptr {row}", f"ptr {behind}")
        f.ret()


def _turned_row(f: Function, extents: Extents) -> str:
    """Write the shape row of the convolution of the cotangent that gives the gradient by the image."""
    shape, row = extents.shape, f.slot("i64", len(FIELDS))
    swapped = {"channels": "filters", "filters": "channels"}
    swapped |= {f"{a}{axis}": f"{b}{axis}" for axis in range(3) for a, b in (("in", "out"), ("out", "in"))}
    for at, name in enumerate(FIELDS):
        if name.startswith("low"):
            axis = name[-1]
            reach = times(f, minus(f, shape[f"kernel{axis}"], 1), shape[f"dilation{axis}"])
            value = minus(f, reach, shape[name])
        else:
            value = "0" if name.startswith("high") else shape[swapped.get(name, name)]
        f.store("i64", value, f.offset(row, 8 * at))
    return row


def _sliding_back_extents(f: Function, extents: Extents) -> list[str]:
    """Write the operands of sliding.py for the gradient by one group of one image."""
    shape = extents.shape
    swapped = {"channels": extents.filters, "filters": extents.channels}
    for axis in (1, 2):
        swapped |= {f"in{axis}": shape[f"out{axis}"], f"out{axis}": shape[f"in{axis}"]}
        reach = times(f, minus(f, shape[f"kernel{axis}"], 1), shape[f"dilation{axis}"])
        swapped[f"low{axis}"] = minus(f, reach, shape[f"low{axis}"])
    return [f"i64 {swapped[name] if name in swapped else shape[name]}" for name in EXTENTS]


def _turned_bytes(f: Function, t: Tile, extents: Extents) -> str:
    """Write the bytes of one group's filters, up to a multiple of 64."""
    return rounded_down(f, plus(f, times(f, extents.group_filters, t.size), 63), 64)


def _zero_without_steps(f: Function, t: Tile, extents: Extents, c: str) -> None:
    """Write the result of filters without elements."""
    with f.when(compare(f, "eq", extents.depth, 0)):
        fill_zeros(f, t, c, extents.group_result)
