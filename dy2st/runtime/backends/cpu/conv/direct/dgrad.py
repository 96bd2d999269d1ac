"""The gradient by the image where windows move by 1: a convolution of the cotangent with the filters turned around."""

from __future__ import annotations

from collections.abc import Callable

from dy2st.runtime.backends.cpu.conv.common.extents import GroupExtents
from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import FIELDS, ConvShape
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_memory, masked_store, span_mask
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, least, minus, negation, plus, rounded_up, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_COST = 500
"""Picoseconds that an element takes to be turned."""
_BLOCK = 16
"""Channels by filters that are turned together, so that what is read and what is written stays in cache."""


def slides(f: LLVMFunction, shape: ConvShape) -> str:
    """Write whether windows move by 1 over at most two axes, and filters have elements."""
    needed = [compare(f, "eq", shape[name], 1) for name in ("in0", "kernel0", "out0", "stride1", "stride2")]
    needed.append(compare(f, "eq", shape["low0"], 0))
    some = [compare(f, "sgt", shape[name], 0) for name in ("channels", "kernel1", "kernel2")]
    return all_of(f, *needed, *some)


def write_dgrad_filters(
    f: LLVMFunction, tile: Tile, extents: GroupExtents, way: Definition, also: Callable[[str], str]
) -> tuple[Definition, ...]:
    """Write that a function for convolutions gives the gradient, where `also` of its shape row holds; return needs."""
    row, turned = _turned_row(f, extents), _turned_filters(tile)
    with f.when(all_of(f, slides(f, extents.shape), also(row))):
        kernel = times(f, *extents.shape.axes("kernel"))
        with f.loop(extents.groups) as g:
            start = times(f, g, extents.group_filters)
            w, there = (f.offset(base, start, tile.element) for base in ("%w", "%scratch"))
            arguments = (("ptr", w), ("ptr", there), ("i64", extents.filters), ("i64", extents.channels),
                         ("i64", kernel))  # fmt: skip
            blocks = f.value(f"udiv i64 {plus(f, extents.channels, _BLOCK - 1)}, {_BLOCK}")
            part = forked(f, turned.name, arguments, blocks, times(f, extents.filters, kernel, _BLOCK * _COST))
        behind = f.offset("%scratch", _filter_bytes(f, tile, extents))
        f.call("void", f"@{way.name}", "ptr %c", "ptr %scratch", "ptr %x", f"ptr {row}", f"ptr {behind}")
        f.ret()
    return way, turned, part


def dgrad_filter_bytes(f: LLVMFunction, tile: Tile, extents: GroupExtents, room: Definition) -> str:
    """Write the bytes of scratch of the gradient, of which `room` tells those of the function for convolutions."""
    inner = f.call("i64", f"@{room.name}", f"ptr {_turned_row(f, extents)}")
    return plus(f, inner, _filter_bytes(f, tile, extents))


def _filter_bytes(f: LLVMFunction, tile: Tile, extents: GroupExtents) -> str:
    return rounded_up(f, times(f, extents.group_filters, extents.groups, tile.size), 64)


def _turned_row(f: LLVMFunction, extents: GroupExtents) -> str:
    """Write the shape row of the convolution of the cotangent."""
    shape, row = extents.shape, f.slot("i64", len(FIELDS))
    swapped = {"channels": "filters", "filters": "channels"}
    swapped |= {f"{a}{axis}": f"{b}{axis}" for axis in range(3) for a, b in (("in", "out"), ("out", "in"))}
    for at, name in enumerate(FIELDS):
        if name.startswith("low"):
            reach = times(f, minus(f, shape[f"kernel{name[-1]}"], 1), shape[f"dilation{name[-1]}"])
            value = minus(f, reach, shape[name])
        else:
            value = "0" if name.startswith(("high", "after")) else shape[swapped.get(name, name)]
        f.store("i64", value, f.offset(row, 8 * at))
    return row


def _turned_filters(tile: Tile) -> Definition:
    """Return the function that writes out[c, f, -1 - k] = w[f, c, k] for some blocks of channels."""
    name = f"dy2st.conv.{tile.dtype}.turned"
    parameters = (("ptr", "%w"), ("ptr", "%out"), ("i64", "%filters"), ("i64", "%channels"), ("i64", "%kernel"),
                  *RANGE)  # fmt: skip
    f = LLVMFunction(name, parameters, linkage="internal", also="noinline nounwind")
    element, last = tile.element, minus(f, "%kernel", 1)
    short = compare(f, "sle", "%kernel", tile.lanes) if tile.lanes > 1 else "false"
    long = negation(f, short)
    first, end = times(f, "%from", _BLOCK), least(f, times(f, "%to", _BLOCK), "%channels")
    with f.loop(end, start=first, step=_BLOCK) as c, f.loop("%filters", step=_BLOCK) as n:
        ends = [least(f, plus(f, start, _BLOCK), count) for start, count in ((c, "%channels"), (n, "%filters"))]
        with f.loop(ends[0], start=c) as channel, f.loop(ends[1], start=n) as number:
            source = times(f, plus(f, times(f, number, "%channels"), channel), "%kernel")
            target = times(f, plus(f, times(f, channel, "%filters"), number), "%kernel")
            if tile.lanes > 1:
                with f.when(short):
                    _turn_vector(f, tile, f.offset("%w", source, element), f.offset("%out", target, element))
            with f.when(long), f.loop("%kernel") as k:
                value = f.load(element, f.offset("%w", plus(f, source, minus(f, last, k)), element))
                f.store(element, value, f.offset("%out", plus(f, target, k), element))
    f.ret()
    return Definition(name, f.text(), masked_memory(tile) if tile.lanes > 1 else ())


def _turn_vector(f: LLVMFunction, tile: Tile, source: str, target: str) -> None:
    """Write a copy of %kernel elements, no more than a vector, from last to first."""
    lanes, v = tile.lanes, tile.vector
    before = minus(f, lanes, "%kernel")
    # not inbounds: what lies in front of the elements is not read
    first = f.value(f"getelementptr {tile.element}, ptr {source}, i64 {minus(f, 0, before)}")
    read = masked_load(f, tile, first, span_mask(f, lanes, before, str(lanes)))
    order = ", ".join(f"i32 {lanes - 1 - i}" for i in range(lanes))
    turned = f.value(f"shufflevector {v} {read}, {v} poison, <{lanes} x i32> <{order}>")
    masked_store(f, tile, turned, target, lane_mask(f, lanes, "%kernel"))
