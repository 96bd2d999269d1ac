"""The cotangent of a mask: those of the scores, added up to its shape.

What is added to one element of it is computed by one thread, in order: a matrix of the mask, or where its rows differ a
block of them, for all heads that share it. So nothing as large as the weights is written that the mask is not.
"""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.attention.forward import few_queries
from dy2st.runtime.backends.cpu.attention.score_gradient import (
    BLOCK,
    PARTS,
    STEP_COST,
    WEIGHT_COST,
    block_of,
    block_slopes,
    slope_room,
)
from dy2st.runtime.backends.cpu.attention.shape_descriptor import TEAM, AttentionShape, named
from dy2st.runtime.backends.cpu.attention.softmax_rows import CLEAR, across, across_lanes, each_vector, read_lanes
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory
from dy2st.runtime.backends.cpu.gemm.packing import packing
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, least, minus, most, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_PARAMETERS = (*PARTS, *(("ptr", f"%{name}") for name in ("slope", "row", "scratch")))
_PACK_COST = 500
"""Picoseconds of an element that is packed."""


@functools.cache
def mask_gradient_kernel(dtype: str, target: Target, drops: bool = False) -> Definition:
    """Return `void @dy2st.attention_mask_grad.f32(q, k, v, mask, ct, slope, row, scratch)`; the slope is dense."""
    t = tile(dtype, target)
    f = LLVMFunction(named("attention_mask_grad", dtype, drops), _PARAMETERS, linkage="internal", also="nounwind")
    row, pack, units = AttentionShape(f, t), _pack(t), _units(t, target.strict, drops)
    width = plus(f, row["features"], row["values"])
    heads = f.value(f"select i1 {few_queries(f, row)}, i64 0, i64 {row.heads}")
    packed = forked(f, pack.name, _PARAMETERS, heads, times(f, row["keys"], width, _PACK_COST))
    outer, inner, blocks = _counts(f, row)
    weights, count = times(f, row.heads, row["queries"], row["keys"]), times(f, outer, inner, blocks)
    each = f.value(f"udiv i64 {weights}, {most(f, count, 1)}")
    cost = times(f, each, plus(f, times(f, width, STEP_COST), WEIGHT_COST))
    needs = (pack, units, packed, forked(f, units.name, _PARAMETERS, count, cost, TEAM))
    f.ret()
    return Definition(f.name, f.text(), needs)


@functools.cache
def mask_gradient_scratch(dtype: str, target: Target, drops: bool = False) -> Definition:
    """Return `i64 @dy2st.attention_mask_grad.f32.scratch(row)`."""
    t, name = tile(dtype, target), named("attention_mask_grad", dtype, drops, ".scratch")
    f = LLVMFunction(name, (("ptr", "%row"),), "i64", linkage="internal", also="nounwind")
    row = AttentionShape(f, t)
    f.ret("i64", plus(f, _packed_bytes(f, row), times(f, slope_room(f, t, row, drops), TEAM)))
    return Definition(f.name, f.text())


def _packed_bytes(f: LLVMFunction, row: AttentionShape) -> str:
    return times(f, row.heads, plus(f, row.key_bytes, row.slope_bytes))


def _packed(f: LLVMFunction, row: AttentionShape, head: str) -> tuple[str, str]:
    """Write where the packed keys and values of a head stand."""
    keys = f.offset("%scratch", times(f, head, row.key_bytes))
    behind = f.offset("%scratch", times(f, row.heads, row.key_bytes))
    return keys, f.offset(behind, times(f, head, row.slope_bytes))


def _pack(t: Tile) -> Definition:
    """Return the function that packs the keys and values of some heads."""
    name = f"dy2st.attention_mask_grad.{t.dtype}.pack"
    f = LLVMFunction(name, (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    row, pack = AttentionShape(f, t), packing(t, True)
    with f.loop("%to", start="%from") as head:
        for operand, extent, room in zip("kv", ("features", "values"), _packed(f, row, head), strict=True):
            place = f.offset(f"%{operand}", row.place(operand, head), t.element)
            f.call("void", f"@{pack.name}", f"ptr {place}", f"i64 {row.bytes(operand)}", f"i64 {row['keys']}",
                   f"i64 {row[extent]}", f"ptr {room}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (pack,))


# ---- parts of the mask ----------------------------------------------------------------------------------------------
def _counts(f: LLVMFunction, row: AttentionShape) -> tuple[str, str, str]:
    """Write how many matrices the mask has along both axes of batches, and how many parts each has."""
    apart = [(_has(f, row, axis), count) for axis, count in zip(("outer", "inner", "row"), _most(row), strict=True)]
    outer, inner, blocks = (f.value(f"select i1 {has}, i64 {count}, i64 1") for has, count in apart)
    return outer, inner, blocks


def _most(row: AttentionShape) -> tuple[str, str, str]:
    return row["outer"], row["inner"], row.blocks


def _has(f: LLVMFunction, row: AttentionShape, axis: str) -> str:
    """Write whether the mask has an axis of more than one element."""
    return compare(f, "ne", row[f"slope_{axis}"], 0)


def _units(t: Tile, strict: bool, drops: bool) -> Definition:
    """Return the function that computes some parts of the mask's cotangent, each from all heads that have it."""
    name = named("attention_mask_grad", t.dtype, drops, ".units")
    f = LLVMFunction(name, (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    row, block = AttentionShape(f, t), _block(t, strict, drops)
    _, inner, parts = _counts(f, row)
    room = f.offset("%scratch", plus(f, _packed_bytes(f, row), times(f, "%who", slope_room(f, t, row, drops))))
    cut = _has(f, row, "row")
    length = f.value(f"select i1 {_has(f, row, 'column')}, i64 {row['keys']}, i64 1")
    with f.loop("%to", start="%from") as unit:
        matrix = f.value(f"udiv i64 {unit}, {parts}")
        first = times(f, f.value(f"urem i64 {unit}, {parts}"), row.block)
        end = least(f, plus(f, first, row.block), row["queries"])
        stop = f.value(f"select i1 {cut}, i64 {end}, i64 {row['queries']}")
        rows = f.value(f"select i1 {cut}, i64 {minus(f, stop, first)}, i64 1")
        i, j = (f.value(f"{what} i64 {matrix}, {inner}") for what in ("udiv", "urem"))
        place = plus(f, times(f, i, row["slope_outer"]), times(f, j, row["slope_inner"]))
        slope = f.offset("%slope", plus(f, place, times(f, first, row["slope_row"])), t.element)
        f.call("void", f"@{CLEAR.name}", f"ptr {slope}", "i8 0", f"i64 {times(f, rows, length, t.size)}", "i1 false")
        (start, end), (low, high) = (_shared(f, row, axis, at) for axis, at in (("outer", i), ("inner", j)))
        with f.loop(end, start=start) as outer, f.loop(high, start=low) as within:
            head = plus(f, times(f, outer, row["inner"]), within)
            keys, values = _packed(f, row, head)
            with f.loop(stop, step=row.block, start=first) as query:
                f.call("void", f"@{block.name}", *(f"{kind} {register}" for kind, register in PARTS), "ptr %row",
                       f"ptr {keys}", f"ptr {values}", f"ptr {room}", f"i64 {head}", f"i64 {query}",
                       f"ptr {slope}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (block, CLEAR))


def _shared(f: LLVMFunction, row: AttentionShape, axis: str, at: str) -> tuple[str, str]:
    """Write the range along an axis of batches for which one matrix of the mask is there."""
    has = _has(f, row, axis)
    first = f.value(f"select i1 {has}, i64 {at}, i64 0")
    return first, f.value(f"select i1 {has}, i64 {plus(f, at, 1)}, i64 {row[axis]}")


def _block(t: Tile, strict: bool, drops: bool) -> Definition:
    """Return the function that adds the cotangents of the scores of a block of queries to those of their mask."""
    given = (*PARTS, ("ptr", "%row"), *BLOCK)
    name = named("attention_mask_grad", t.dtype, drops, ".block")
    f = LLVMFunction(name, (*given, ("ptr", "%slope")), linkage="internal", also="noinline nounwind")
    row, slopes_of, add = AttentionShape(f, t), block_slopes(t, strict, drops), _adding(t)
    f.call("void", f"@{slopes_of.name}", *(f"{kind} {register}" for kind, register in given))
    count, keys = block_of(f, row)
    f.call("void", f"@{add.name}", f"ptr {f.offset('%scores', row.room_bytes)}", f"i64 {times(f, row.width, t.size)}",
           "ptr %slope", f"i64 {row.bytes('slope')}", f"i64 {row['slope_column']}", f"i64 {count}",
           f"i64 {keys}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (slopes_of, add))


def _adding(t: Tile) -> Definition:
    """Return the function that adds rows to others, or their sums to numbers."""
    given = (("ptr", "%from"), ("i64", "%from_apart"), ("ptr", "%to"),
             *(("i64", f"%{n}") for n in ("apart", "column", "rows", "count")))  # fmt: skip
    f = LLVMFunction(f"dy2st.attention_mask_grad.{t.dtype}.adding", given, linkage="internal", also="noinline nounwind")
    v, e, along = t.vector, t.element, compare(f, "ne", "%column", 0)
    with f.loop("%rows") as i:
        row, to = f.offset("%from", times(f, i, "%from_apart")), f.offset("%to", times(f, i, "%apart"))
        with f.when(along):
            each_vector(f, t, to, lambda x, at, row=row: f.value(f"fadd {v} {x}, {read_lanes(f, t, row, at)}"))
        with f.when(negation(f, along)):
            total = f.slot(v)
            f.store(v, "zeroinitializer", total)

            def added(x: str, _: str, total: str = total) -> str:
                f.store(v, f.value(f"fadd {v} {f.load(v, total)}, {x}"), total)
                return x

            each_vector(f, t, row, added, writes=False)
            whole = across(f, t, "fadd", f.load(v, total))
            f.store(e, f.value(f"fadd {e} {f.load(e, to)}, {whole}"), to)
    f.ret()
    masked = masked_memory(t) if t.lanes > 1 else ()
    return Definition(f.name, f.text(), (*across_lanes(t), *masked))
