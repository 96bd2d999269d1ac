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
from dy2st.runtime.cpu.conv.shape import Shape, all_of, axis_fields, least, product
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.matmul import matmul_kernel, scratch_kernel
from dy2st.runtime.cpu.gemm.panels import panels
from dy2st.runtime.cpu.gemm.tile import Tile, tile
from dy2st.runtime.cpu.target import Target

_PARAMETERS = (("ptr", "%x"), ("ptr", "%w"), ("ptr", "%c"), ("ptr", "%shape"), ("ptr", "%scratch"))
"""Image, filters and result (or its cotangent), dense; the shape row of shape.py; scratch aligned to 64."""


class _Extents:
    """What all three functions derive from the shape row."""

    def __init__(self, f: Function, t: Tile):
        names = ["batch", "channels", "filters", "groups"]
        self.shape = shape = Shape(f, [*names, *axis_fields("in", "kernel", "out", "stride", "low")])
        self.batch, self.groups = shape["batch"], shape["groups"]
        self.filters = f.value(f"sdiv i64 {shape['filters']}, {most_one(f, self.groups)}")
        self.channels = f.value(f"sdiv i64 {shape['channels']}, {most_one(f, self.groups)}")
        self.depth = product(f, [self.channels, *shape.axes("kernel")])
        self.places = product(f, shape.axes("out"))
        self.image = product(f, [self.channels, *shape.axes("in")])
        self.group_filters = f.value(f"mul i64 {self.filters}, {self.depth}")
        self.group_result = f.value(f"mul i64 {self.filters}, {self.places}")
        self.row_bytes = (t.width + t.lanes) * t.size
        """A row of a block of windows; the product's own scratch stands behind `depth` such rows and a vector."""


def most_one(f: Function, x: str) -> str:
    """Write max(x, 1)."""
    return f.value(f"select i1 {f.value(f'icmp sgt i64 {x}, 1')}, i64 {x}, i64 1")


@functools.cache
def convolution_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv.f32(x, w, out, shape, scratch)`."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv.{dtype}", _PARAMETERS, linkage="internal", also="nounwind")
    extents = _Extents(f, t)
    multiply, whole, windows = panels(t), matmul_kernel(dtype, False, False, target), gather(t)
    direct = _takes_every_element(f, extents.shape)
    with _groups(f, t, extents) as (x, w, c):
        with f.when(direct):
            f.call("void", f"@{whole.name}", f"ptr {w}", f"i64 {extents.depth}", f"ptr {x}", f"i64 {extents.places}",
                   f"ptr {c}", f"i64 {extents.places}", f"i64 {extents.filters}", f"i64 {extents.places}",
                   f"i64 {extents.depth}", "ptr %scratch", "i1 false")  # fmt: skip
        with f.when(f.value(f"xor i1 {direct}, true")):
            with _blocks(f, t, extents) as (j, columns, p, steps):
                _call_windows(f, windows, x, extents, (p, steps, j, columns))
                later = f.value(f"icmp sgt i64 {p}, 0")
                c_row = f.value(f"mul i64 {extents.places}, {t.size}")
                w_row = f.value(f"mul i64 {extents.depth}, {t.size}")
                f.call("void", f"@{multiply.name}", f"ptr {f.offset(w, p, t.element)}", f"i64 {w_row}", f"i64 {t.size}",
                       "ptr %scratch", f"i64 {extents.row_bytes}", f"ptr {f.offset(c, j, t.element)}", f"i64 {c_row}",
                       f"i64 {extents.filters}", f"i64 {columns}", f"i64 {steps}", f"i1 {later}",
                       "i1 false")  # fmt: skip
            _zero_without_steps(f, t, extents, c)
    f.ret()
    return Definition(f.name, f.text(), (multiply, whole, windows))


@functools.cache
def input_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv_input_grad.f32(x, w, c, shape, scratch)`, which writes x."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv_input_grad.{dtype}", _PARAMETERS, linkage="internal", also="nounwind")
    extents = _Extents(f, t)
    multiply, windows = matmul_kernel(dtype, True, False, target), scatter(t)
    pixels = product(f, [extents.batch, extents.groups, extents.image])
    _fill_zeros(f, t, "%x", pixels)
    behind = f.offset("%scratch", extents.row_bytes * t.depth + 64)
    with _groups(f, t, extents) as (x, w, c), _blocks(f, t, extents) as (j, columns, p, steps):
        f.call("void", f"@{multiply.name}", f"ptr {f.offset(w, p, t.element)}", f"i64 {extents.depth}",
               f"ptr {f.offset(c, j, t.element)}", f"i64 {extents.places}", "ptr %scratch",
               f"i64 {extents.row_bytes // t.size}", f"i64 {steps}", f"i64 {columns}", f"i64 {extents.filters}",
               f"ptr {behind}", "i1 false")  # fmt: skip
        _call_windows(f, windows, x, extents, (p, steps, j, columns))
    f.ret()
    return Definition(f.name, f.text(), (multiply, windows))


@functools.cache
def weight_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.conv_weight_grad.f32(x, w, c, shape, scratch)`, which writes w."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv_weight_grad.{dtype}", _PARAMETERS, linkage="internal", also="nounwind")
    extents = _Extents(f, t)
    multiply, windows = matmul_kernel(dtype, False, True, target), gather(t)
    _fill_zeros(f, t, "%w", product(f, [extents.groups, extents.group_filters]))
    behind = f.offset("%scratch", extents.row_bytes * t.depth + 64)
    with _groups(f, t, extents) as (x, w, c), _blocks(f, t, extents) as (j, columns, p, steps):
        _call_windows(f, windows, x, extents, (p, steps, j, columns))
        f.call("void", f"@{multiply.name}", f"ptr {f.offset(c, j, t.element)}", f"i64 {extents.places}", "ptr %scratch",
               f"i64 {extents.row_bytes // t.size}", f"ptr {f.offset(w, p, t.element)}", f"i64 {extents.depth}",
               f"i64 {extents.filters}", f"i64 {steps}", f"i64 {columns}", f"ptr {behind}", "i1 true")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (multiply, windows))


@functools.cache
def convolution_scratch(dtype: str, target: Target) -> Definition:
    """Return `i64 @dy2st.conv.f32.scratch(ptr shape)`: the bytes that any of the three functions needs."""
    t = tile(dtype, target)
    f = Function(f"dy2st.conv.{dtype}.scratch", (("ptr", "%shape"),), "i64", linkage="internal", also="nounwind")
    extents = _Extents(f, t)
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
        worst = f.value(f"select i1 {f.value(f'icmp sgt i64 {size}, {worst}')}, i64 {size}, i64 {worst}")
    f.ret("i64", f.value(f"add i64 {worst}, {block}"))
    return Definition(f.name, f.text(), tuple(needs))


@contextmanager
def _groups(f: Function, t: Tile, extents: _Extents) -> Iterator[tuple[str, str, str]]:
    """Write loops over batch and groups: gives the addresses of image, filters and result."""
    with f.loop(extents.batch) as b, f.loop(extents.groups) as g:
        number = f.value(f"add i64 {f.value(f'mul i64 {b}, {extents.groups}')}, {g}")
        x = f.offset("%x", f.value(f"mul i64 {number}, {extents.image}"), t.element)
        w = f.offset("%w", f.value(f"mul i64 {g}, {extents.group_filters}"), t.element)
        c = f.offset("%c", f.value(f"mul i64 {number}, {extents.group_result}"), t.element)
        yield x, w, c


@contextmanager
def _blocks(f: Function, t: Tile, extents: _Extents) -> Iterator[tuple[str, str, str, str]]:
    """Write loops over blocks of the matrix of windows: first column, columns, first row, rows."""
    with f.loop(extents.places, step=t.width) as j, f.loop(extents.depth, step=t.depth) as p:
        columns = least(f, f.value(f"sub i64 {extents.places}, {j}"), t.width)
        steps = least(f, f.value(f"sub i64 {extents.depth}, {p}"), t.depth)
        yield j, columns, p, steps


def _call_windows(f: Function, windows: Definition, x: str, extents: _Extents, block: tuple[str, ...]) -> None:
    row, rows, column, columns = block
    f.call("void", f"@{windows.name}", f"ptr {x}", "ptr %scratch", f"i64 {extents.row_bytes}", f"i64 {row}",
           f"i64 {rows}", f"i64 {column}", f"i64 {columns}", "ptr %shape")  # fmt: skip


def _takes_every_element(f: Function, shape: Shape) -> str:
    """Write whether the columns are the image: kernel 1, stride 1, and a result of the image's extents."""
    conditions = [f.value(f"icmp eq i64 {shape[name]}, 1") for name in axis_fields("kernel", "stride")]
    conditions += [f.value(f"icmp eq i64 {shape[name]}, 0") for name in axis_fields("low")]
    pairs = zip(shape.axes("in"), shape.axes("out"), strict=True)
    return all_of(f, [*conditions, *(f.value(f"icmp eq i64 {n}, {m}") for n, m in pairs)])


def _zero_without_steps(f: Function, t: Tile, extents: _Extents, c: str) -> None:
    """Write the result of filters without elements."""
    with f.when(f.value(f"icmp eq i64 {extents.depth}, 0")):
        _fill_zeros(f, t, c, extents.group_result)


def _fill_zeros(f: Function, t: Tile, address: str, count: str) -> None:
    """Write zeros."""
    whole = f.value(f"and i64 {count}, {-t.lanes}")
    with f.loop(whole, step=t.lanes) as i:
        f.do(f"store {t.vector} zeroinitializer, ptr {f.offset(address, i, t.element)}, align {t.size}")
    with f.loop(count, start=whole) as i:
        f.store(t.element, "0.0", f.offset(address, i, t.element))
