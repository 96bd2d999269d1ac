"""Which algorithm runs a convolution over 1 to 3 axes and its two transposes: chosen by shape, in the generated code.

Where no other is better they are products of matrices with blocks of windows (common/im2col.py):

    conv               out[b, g] = w[g] columns(x[b, g])
    conv_input_grad    columns(x[b, g]) += w[g]^T c[b, g]
    conv_weight_grad   w[g] += c[b, g] columns(x[b, g])^T

A kernel of one place that takes every element leaves nothing to lay out: its columns are the image.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.conv.common.epilogue import call_finish, finish, what_follows
from dy2st.runtime.backends.cpu.conv.common.extents import PARAMETERS, GroupExtents, each_group, fill_zeros
from dy2st.runtime.backends.cpu.conv.common.im2col import gather, scatter
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import ConvShape, axis_fields
from dy2st.runtime.backends.cpu.conv.depthwise.dgrad import depthwise_dgrad
from dy2st.runtime.backends.cpu.conv.depthwise.forward import depthwise_forward, depthwise_scratch, is_depthwise
from dy2st.runtime.backends.cpu.conv.depthwise.wgrad import depthwise_wgrad
from dy2st.runtime.backends.cpu.conv.direct.batch_interleaved import (
    batch_interleaved,
    batch_interleaved_scratch,
    pays_to_interleave,
    pays_to_interleave_tiles,
)
from dy2st.runtime.backends.cpu.conv.direct.dgrad import dgrad_filter_bytes, slides, write_dgrad_filters
from dy2st.runtime.backends.cpu.conv.direct.forward import applies, direct, direct_scratch
from dy2st.runtime.backends.cpu.conv.direct.output_vectors import permutes
from dy2st.runtime.backends.cpu.conv.direct.small_output import has_small_output, small_output, small_output_scratch
from dy2st.runtime.backends.cpu.conv.direct.wgrad import direct_wgrad, many_places
from dy2st.runtime.backends.cpu.conv.direct.winograd import tiles_pay, tiles_row, winograd, winograd_scratch
from dy2st.runtime.backends.cpu.conv.matmul.im2col_batched import (
    im2col_batched,
    im2col_batched_dgrad,
    im2col_batched_scratch,
    im2col_batched_wgrad,
    small_places,
)
from dy2st.runtime.backends.cpu.conv.matmul.shifted_gemm import shifted_gemm, shifted_gemm_dgrad, shifted_gemm_scratch
from dy2st.runtime.backends.cpu.conv.matmul.shifted_gemm_wgrad import dots_pay, shifted_gemm_wgrad
from dy2st.runtime.backends.cpu.gemm.epilogue import NOTHING
from dy2st.runtime.backends.cpu.gemm.matmul import matmul_kernel, scratch_kernel
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
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

_WORTH_TURNING = 96
"""The places, of all images, from which on turning the filters costs less than it saves (measured)."""


@functools.cache
def convolution_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv.f32(x, w, out, shape, scratch)`."""
    t = tile(dtype, target)
    f = LLVMFunction(f"dy2st.conv.{dtype}", PARAMETERS, linkage="internal", also="nounwind")
    extents = GroupExtents(f, t)
    multiply, whole, windows = panels(t), matmul_kernel(dtype, False, False, target), gather(t)
    side_by_side, by_windows, by_lines = im2col_batched(t), small_output(t), depthwise_forward(t)
    ways = (
        [direct(t), batch_interleaved(t), winograd(t)] if permutes(target) else [shifted_gemm_dgrad(t, shifted_gemm(t))]
    )
    channels = times(f, extents.images, extents.shape["filters"])

    def at_the_end(condition: str, way: Definition) -> None:
        with f.when(condition):
            f.call("void", f"@{way.name}", *(f"ptr {register}" for _, register in PARAMETERS))
            call_finish(f, "0", channels, extents.places)
            f.ret()

    whole_image = _takes_every_element(f, extents.shape)
    laid_out = negation(f, whole_image)
    _instead(f, is_depthwise(f, t, extents), by_lines)
    at_the_end(has_small_output(f, extents), by_windows)
    if permutes(target):
        _instead(f, pays_to_interleave_tiles(f, t), ways[1])
        _instead(f, tiles_pay(f, t, extents, tiles_row(f)), ways[2])
        _instead(f, all_of(f, applies(f, t, extents), laid_out), ways[0])
        _instead(f, pays_to_interleave(f, t), ways[1])
    at_the_end(_small_images(f, t, extents), side_by_side)
    if not permutes(target):
        at_the_end(all_of(f, slides(f, extents.shape), laid_out), ways[0])
    with each_group(f, t, extents) as (x, w, c, number):
        with f.when(whole_image):
            f.call("void", f"@{whole.name}", f"ptr {w}", f"i64 {extents.depth}", f"ptr {x}", f"i64 {extents.places}",
                   f"ptr {c}", f"i64 {extents.places}", f"i64 {extents.filters}", f"i64 {extents.places}",
                   f"i64 {extents.depth}", "ptr %scratch", "i1 false", f"ptr {what_follows(f)}",
                   f"i64 {times(f, number, extents.filters)}")  # fmt: skip
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
    with f.when(laid_out):
        call_finish(f, "0", channels, extents.places)
    f.ret()
    needs = (multiply, whole, windows, side_by_side, by_windows, by_lines, *ways, finish())
    return Definition(f.name, f.text(), needs)


@functools.cache
def input_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv_input_grad.f32(x, w, c, shape, scratch)`, which writes x."""
    t = tile(dtype, target)
    f = LLVMFunction(f"dy2st.conv_input_grad.{dtype}", PARAMETERS, linkage="internal", also="nounwind")
    extents = GroupExtents(f, t)
    multiply, windows = matmul_kernel(dtype, True, False, target), scatter(t)
    side_by_side = im2col_batched_dgrad(t, target)
    by_lines = write_dgrad_filters(
        f, t, extents, depthwise_forward(t), lambda row: is_depthwise(f, t, GroupExtents(f, t, row))
    )
    by_taps = depthwise_dgrad(t)
    _instead(f, is_depthwise(f, t, extents), by_taps)
    if permutes(target):
        ways = write_dgrad_filters(
            f,
            t,
            extents,
            batch_interleaved(t),
            lambda row: any_of(f, pays_to_interleave_tiles(f, t, row), pays_to_interleave(f, t, row)),
        )
        ways += write_dgrad_filters(
            f, t, extents, winograd(t), lambda row: tiles_pay(f, t, GroupExtents(f, t, row), tiles_row(f, row))
        )
        ways += write_dgrad_filters(f, t, extents, direct(t), lambda row: _pays_to_turn(f, t, GroupExtents(f, t, row)))
        _instead(f, _small_images(f, t, extents), side_by_side)
    else:
        _instead(f, _small_images(f, t, extents), side_by_side)
        ways = write_dgrad_filters(f, t, extents, shifted_gemm_dgrad(t, shifted_gemm(t)), lambda _: "true")
    pixels = times(f, extents.batch, extents.groups, extents.image)
    fill_zeros(f, t, "%x", pixels)
    behind = f.offset("%scratch", extents.row_bytes * t.depth + 64)
    with each_group(f, t, extents) as (x, w, c, _), _blocks(f, t, extents) as (j, columns, p, steps):
        f.call("void", f"@{multiply.name}", f"ptr {f.offset(w, p, t.element)}", f"i64 {extents.depth}",
               f"ptr {f.offset(c, j, t.element)}", f"i64 {extents.places}", "ptr %scratch",
               f"i64 {extents.row_bytes // t.size}", f"i64 {steps}", f"i64 {columns}", f"i64 {extents.filters}",
               f"ptr {behind}", "i1 false", NOTHING)  # fmt: skip
        _call_windows(f, windows, x, extents, (p, steps, j, columns))
    f.ret()
    needs = (multiply, windows, side_by_side, by_taps, *by_lines, *ways)
    return Definition(f.name, f.text(), needs)


@functools.cache
def weight_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv_weight_grad.f32(x, w, c, shape, scratch)`, which writes w."""
    t = tile(dtype, target)
    f = LLVMFunction(f"dy2st.conv_weight_grad.{dtype}", PARAMETERS, linkage="internal", also="nounwind")
    extents = GroupExtents(f, t)
    multiply, windows = matmul_kernel(dtype, False, True, target), gather(t)
    side_by_side = im2col_batched_wgrad(t, target)
    fill_zeros(f, t, "%w", times(f, extents.groups, extents.group_filters))
    way = direct_wgrad(t) if permutes(target) else shifted_gemm_dgrad(t, shifted_gemm_wgrad(t))
    by_lines = depthwise_wgrad(t)
    _instead(f, is_depthwise(f, t, extents), by_lines)
    if permutes(target):
        _instead(f, all_of(f, applies(f, t, extents), many_places(f, t, extents)), way)
    _instead(f, _small_images(f, t, extents), side_by_side)
    if not permutes(target):
        _instead(f, all_of(f, slides(f, extents.shape), dots_pay(f, t, extents)), way)
    behind = f.offset("%scratch", extents.row_bytes * t.depth + 64)
    with each_group(f, t, extents) as (x, w, c, _), _blocks(f, t, extents) as (j, columns, p, steps):
        _call_windows(f, windows, x, extents, (p, steps, j, columns))
        f.call("void", f"@{multiply.name}", f"ptr {f.offset(c, j, t.element)}", f"i64 {extents.places}", "ptr %scratch",
               f"i64 {extents.row_bytes // t.size}", f"ptr {f.offset(w, p, t.element)}", f"i64 {extents.depth}",
               f"i64 {extents.filters}", f"i64 {steps}", f"i64 {columns}", f"ptr {behind}", "i1 true",
               NOTHING)  # fmt: skip
    f.ret()
    needs = (multiply, windows, side_by_side, by_lines, way)
    return Definition(f.name, f.text(), needs)


@functools.cache
def convolution_scratch(dtype: str, target: Target) -> Definition:
    """Return `i64 @dy2st.conv.f32.scratch(ptr shape)`: the bytes that any of the three functions needs."""
    t = tile(dtype, target)
    f = LLVMFunction(f"dy2st.conv.{dtype}.scratch", (("ptr", "%shape"),), "i64", linkage="internal", also="nounwind")
    extents = GroupExtents(f, t)
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
    room = most(
        f, worst, f.value(f"select i1 {has_small_output(f, extents)}, i64 {small_output_scratch(f, t, extents)}, i64 0")
    )
    rooms = (
        (direct_scratch(t), batch_interleaved_scratch(t), winograd_scratch(t))
        if permutes(target)
        else (shifted_gemm_scratch(t),)
    )
    rooms = (depthwise_scratch(t), *rooms)
    needs += rooms
    for own in rooms:
        room = most(f, room, f.call("i64", f"@{own.name}", "ptr %shape"))
        room = most(f, room, dgrad_filter_bytes(f, t, extents, own))
    small = compare(f, "sle", extents.places, small_places(t))
    f.ret("i64", most(f, room, f.value(f"select i1 {small}, i64 {im2col_batched_scratch(f, t, extents)}, i64 0")))
    return Definition(f.name, f.text(), tuple(needs))


@contextmanager
def _blocks(f: LLVMFunction, t: Tile, extents: GroupExtents) -> Iterator[tuple[str, str, str, str]]:
    """Write loops over blocks of the matrix of windows: first column, columns, first row, rows."""
    with f.loop(extents.places, step=t.width) as j, f.loop(extents.depth, step=t.depth) as p:
        columns = least(f, minus(f, extents.places, j), t.width)
        steps = least(f, minus(f, extents.depth, p), t.depth)
        yield j, columns, p, steps


def _call_windows(f: LLVMFunction, windows: Definition, x: str, extents: GroupExtents, block: tuple[str, ...]) -> None:
    row, rows, column, columns = block
    f.call("void", f"@{windows.name}", f"ptr {x}", "ptr %scratch", f"i64 {extents.row_bytes}", f"i64 {row}",
           f"i64 {rows}", f"i64 {column}", f"i64 {columns}", "ptr %shape")  # fmt: skip


def _takes_every_element(f: LLVMFunction, shape: ConvShape) -> str:
    """Write whether the columns are the image: kernel 1, stride 1, and a result of the image's extents."""
    conditions = [compare(f, "eq", shape[name], 1) for name in axis_fields("kernel", "stride")]
    conditions += [compare(f, "eq", shape[name], 0) for name in axis_fields("low")]
    pairs = zip(shape.axes("in"), shape.axes("out"), strict=True)
    return all_of(f, *conditions, *(compare(f, "eq", n, m) for n, m in pairs))


def _pays_to_turn(f: LLVMFunction, t: Tile, extents: GroupExtents) -> str:
    """Write whether there is so much to multiply that filters are turned for it, and vectors of places apply."""
    places = times(f, extents.batch, extents.places)
    return all_of(f, applies(f, t, extents), compare(f, "sge", places, _WORTH_TURNING))


def _instead(f: LLVMFunction, condition: str, way: Definition) -> None:
    """Write that another function with the same operands does it all where a condition holds."""
    with f.when(condition):
        f.call("void", f"@{way.name}", *(f"ptr {register}" for _, register in PARAMETERS))
        f.ret()


def _small_images(f: LLVMFunction, t: Tile, extents: GroupExtents) -> str:
    """Write whether there are several images with few places each."""
    few = compare(f, "sle", extents.places, small_places(t))
    several, some = compare(f, "sgt", extents.batch, 1), compare(f, "sgt", extents.depth, 0)
    return all_of(f, few, several, some)


def _zero_without_steps(f: LLVMFunction, t: Tile, extents: GroupExtents, c: str) -> None:
    """Write the result of filters without elements."""
    with f.when(compare(f, "eq", extents.depth, 0)):
        fill_zeros(f, t, c, extents.group_result)
