"""The cotangents of queries, keys and values, a head at a time.

A block of queries at a time there are weights w and cotangents s of the scores (score_gradient.py). Then dq = s k, and
s^T q and w^T ct are added to dk and dv. One thread computes a head, so sums have one order.
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
from dy2st.runtime.backends.cpu.attention.softmax_rows import CLEAR
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.packing import packing
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import any_of, compare, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_PARAMETERS = (
    *PARTS, *(("ptr", f"%{name}") for name in ("dq", "dk", "dv", "row", "scratch"))
)  # fmt: skip
"""dq, dk and dv are dense."""


@functools.cache
def attention_gradient_kernel(dtype: str, target: Target, drops: bool = False) -> Definition:
    """Return `void @dy2st.attention_grad.f32(q, k, v, mask, ct, dq, dk, dv, row, scratch)`."""
    t = tile(dtype, target)
    f = LLVMFunction(named("attention_grad", dtype, drops), _PARAMETERS, linkage="internal", also="nounwind")
    row, heads = AttentionShape(f, t), _heads(t, target.strict, drops)
    steps = times(f, plus(f, times(f, row["features"], 3), times(f, row["values"], 2)), STEP_COST)
    cost = times(f, row["queries"], row["keys"], plus(f, steps, WEIGHT_COST))
    needs = (heads, forked(f, heads.name, _PARAMETERS, row.heads, cost, TEAM))
    f.ret()
    return Definition(f.name, f.text(), needs)


@functools.cache
def attention_gradient_scratch(dtype: str, target: Target, drops: bool = False) -> Definition:
    """Return `i64 @dy2st.attention_grad.f32.scratch(row)`."""
    name = named("attention_grad", dtype, drops, ".scratch")
    f = LLVMFunction(name, (("ptr", "%row"),), "i64", linkage="internal", also="nounwind")
    t = tile(dtype, target)
    f.ret("i64", times(f, _room(f, t, AttentionShape(f, t), drops), TEAM))
    return Definition(f.name, f.text())


def _room(f: LLVMFunction, t: Tile, row: AttentionShape, drops: bool) -> str:
    """Write how many bytes a thread needs."""
    return plus(f, row.key_bytes, row.slope_bytes, slope_room(f, t, row, drops))


def _heads(t: Tile, strict: bool, drops: bool) -> Definition:
    """Return the function that computes the cotangents of some heads."""
    name = named("attention_grad", t.dtype, drops, ".heads")
    f = LLVMFunction(name, (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    row, pack, block = AttentionShape(f, t), packing(t, True), _block(t, strict, drops)
    keys = f.offset("%scratch", times(f, "%who", _room(f, t, row, drops)))
    values = f.offset(keys, row.key_bytes)
    scores = f.offset(values, row.slope_bytes)
    with f.loop("%to", start="%from") as head:
        with f.when(negation(f, few_queries(f, row))):
            for name, extent, room in (("k", "features", keys), ("v", "values", values)):
                place = f.offset(f"%{name}", row.place(name, head), t.element)
                f.call("void", f"@{pack.name}", f"ptr {place}", f"i64 {times(f, row[f'{name}_row'], t.size)}",
                       f"i64 {row['keys']}", f"i64 {row[extent]}", f"ptr {room}")  # fmt: skip
        with f.when(any_of(f, row.causal, compare(f, "eq", row["queries"], 0))):
            for made, extent in (("%dk", "features"), ("%dv", "values")):
                size = times(f, row["keys"], row[extent], t.size)
                place = f.offset(made, times(f, head, size))
                f.call("void", f"@{CLEAR.name}", f"ptr {place}", "i8 0", f"i64 {size}", "i1 false")
        with f.loop(row["queries"], step=row.block) as first:
            f.call("void", f"@{block.name}", *(f"{kind} {register}" for kind, register in _PARAMETERS[:-1]),
                   f"ptr {keys}", f"ptr {values}", f"ptr {scores}", f"i64 {head}", f"i64 {first}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (pack, block, CLEAR))


def _block(t: Tile, strict: bool, drops: bool) -> Definition:
    """Return the function that goes through a block of queries of a head."""
    name = named("attention_grad", t.dtype, drops, ".block")
    f = LLVMFunction(name, (*_PARAMETERS[:-1], *BLOCK), linkage="internal", also="noinline nounwind")
    row, multiply, slopes_of, size = AttentionShape(f, t), panels(t), block_slopes(t, strict, drops), t.size
    given = (*PARTS, ("ptr", "%row"), *BLOCK)
    f.call("void", f"@{slopes_of.name}", *(f"{kind} {register}" for kind, register in given))
    count, keys = block_of(f, row)
    slopes, apart = f.offset("%scores", row.room_bytes), times(f, row.width, size)
    along, down = (f"i64 {apart}", f"i64 {size}"), (f"i64 {size}", f"i64 {apart}")
    later = any_of(f, row.causal, compare(f, "ne", "%first", 0))  # then keys that the first block needs are not all
    place = {name: f.offset(f"%{name}", row.place(name, "%head"), t.element) for name in ("q", "k", "ct")}
    for name in ("q", "ct"):
        place[name] = f.offset(place[name], times(f, "%first", row.bytes(name)))
    products = (
        ("%dq", slopes, along, "k", "features", (count, keys), "false"),
        ("%dk", slopes, down, "q", "features", (keys, count), later),
        ("%dv", "%scores", down, "ct", "values", (keys, count), later),
    )
    for made, left, steps, right, extent, (rows, inner), adds in products:
        before = (
            plus(f, times(f, "%head", row["queries"]), "%first") if made == "%dq" else times(f, "%head", row["keys"])
        )
        there, width = f.offset(made, times(f, before, row[extent]), t.element), times(f, row[extent], size)
        f.call("void", f"@{multiply.name}", f"ptr {left}", *steps, f"ptr {place[right]}", f"i64 {row.bytes(right)}",
               f"ptr {there}", f"i64 {width}", f"i64 {rows}", f"i64 {row[extent]}", f"i64 {inner}", f"i1 {adds}",
               "i1 false")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (multiply, slopes_of))
