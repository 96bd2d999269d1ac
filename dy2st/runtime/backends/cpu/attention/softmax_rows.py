"""Scores to weights, row after row: the mask is added, then exp(x - max) over its sum."""

from __future__ import annotations

from collections.abc import Callable

from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, masked_memory, masked_store, spread
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.libm.functions import function, strict_function
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import (
    all_of,
    compare,
    least,
    minus,
    negation,
    plus,
    rounded_down,
    times,
)

_PARAMETERS = (
    ("ptr", "%scores"), ("i64", "%apart"), ("ptr", "%mask"), ("i64", "%mask_apart"), ("i64", "%mask_column"),
    ("i64", "%rows"), ("i64", "%count"), ("i64", "%seen"), ("i64", "%wider"),
)  # fmt: skip
"""Rows are so many bytes apart; a mask has an element for each score (1) or for each row (0).

Row i has `seen` + i * `wider` keys, at most all that there are; the weights of others are 0.
"""
CLEAR = Definition("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)")
_Change = Callable[[str, str], str]


def weights(tile: Tile, strict: bool) -> Definition:
    """Return `void @dy2st.attention.f32.weights(...)`, which takes what `_PARAMETERS` says."""
    name = f"dy2st.attention.{tile.dtype}.weights"
    f = LLVMFunction(name, _PARAMETERS, linkage="internal", also="noinline nounwind")
    t, v, lanes = tile.element, tile.vector, tile.lanes
    exp = (strict_function if strict else function)("exp", tile.dtype, lanes)
    masked = f.value("icmp ne ptr %mask, null")
    along = all_of(f, masked, compare(f, "eq", "%mask_column", 1))
    lowest = tile.splat("0xFFF0000000000000")
    with f.loop("%rows") as i:
        row = f.offset("%scores", times(f, i, "%apart"))
        seen = least(f, plus(f, "%seen", times(f, i, "%wider")), "%count")
        mask = f.value(f"getelementptr i8, ptr %mask, i64 {times(f, i, '%mask_apart')}")
        with f.when(along):
            each_vector(
                f, tile, row, lambda x, at, mask=mask: f.value(f"fadd {v} {x}, {read_lanes(f, tile, mask, at)}")
            )
        with f.when(all_of(f, masked, negation(f, along), compare(f, "sgt", "%count", 0))):
            term = spread(f, tile, f.load(t, mask))
            each_vector(f, tile, row, lambda x, _, term=term: f.value(f"fadd {v} {x}, {term}"))
        top, total = f.slot(v), f.slot(v)
        f.store(v, lowest, top)
        f.store(v, "zeroinitializer", total)
        each_vector(f, tile, row, lambda x, _, top=top: _larger(f, tile, x, top), lowest, writes=False, count=seen)
        largest = spread(f, tile, across(f, tile, "fmax", f.load(v, top)))

        def powered(x: str, _: str, largest: str = largest, total: str = total) -> str:
            e = f.call(v, f"@{exp.name}", f"{v} {f.value(f'fsub {v} {x}, {largest}')}")
            f.store(v, f.value(f"fadd {v} {f.load(v, total)}, {e}"), total)
            return e

        each_vector(f, tile, row, powered, lowest, count=seen)
        whole = across(f, tile, "fadd", f.load(v, total))
        share = spread(f, tile, f.value(f"fdiv {t} 1.0, {whole}"))
        each_vector(f, tile, row, lambda x, _, share=share: f.value(f"fmul {v} {x}, {share}"), count=seen)
        unseen = times(f, minus(f, "%count", seen), tile.size)
        f.call("void", "@llvm.memset.p0.i64", f"ptr {f.offset(row, seen, t)}", "i8 0", f"i64 {unseen}", "i1 false")
    f.ret()
    return Definition(name, f.text(), (exp, CLEAR, *across_lanes(tile), *(masked_memory(tile) if lanes > 1 else ())))


def each_vector(
    f: LLVMFunction,
    tile: Tile,
    row: str,
    change: _Change,
    otherwise: str = "zeroinitializer",
    writes: bool = True,
    count: str = "%count",
) -> None:
    """Write a run through a row: full vectors, then the rest, whose other lanes are `otherwise`."""
    v, lanes = tile.vector, tile.lanes
    whole = rounded_down(f, count, lanes)
    with f.loop(whole, step=lanes) as at:
        place = f.offset(row, at, tile.element)
        made = change(f.value(f"load {v}, ptr {place}, align {tile.size}"), at)
        if writes:
            f.do(f"store {v} {made}, ptr {place}, align {tile.size}")
    if lanes == 1:
        return
    left = minus(f, count, whole)
    with f.when(compare(f, "sgt", left, 0)):
        mask, place = lane_mask(f, lanes, left), f.offset(row, whole, tile.element)
        x = masked_load(f, tile, place, mask)
        made = change(f.value(f"select <{lanes} x i1> {mask}, {v} {x}, {v} {otherwise}"), whole)
        if writes:
            masked_store(f, tile, made, place, mask)


def read_lanes(f: LLVMFunction, tile: Tile, row: str, at: str) -> str:
    """Write a read of a vector of another row, of the elements below `%count`."""
    place = f.offset(row, at, tile.element)
    if tile.lanes == 1:
        return f.load(tile.element, place)
    return masked_load(f, tile, place, lane_mask(f, tile.lanes, minus(f, "%count", at)))


def _larger(f: LLVMFunction, tile: Tile, x: str, top: str) -> str:
    """Write the larger elements to `top`; a NaN is found by the sum."""
    v, old = tile.vector, f.load(tile.vector, top)
    kind = "i1" if tile.lanes == 1 else f"<{tile.lanes} x i1>"
    f.store(v, f.value(f"select {kind} {f.value(f'fcmp ogt {v} {x}, {old}')}, {v} {x}, {v} {old}"), top)
    return x


def across(f: LLVMFunction, tile: Tile, what: str, vector: str) -> str:
    """Write the sum or the largest of a vector's lanes."""
    if tile.lanes == 1:
        return vector
    t, v = tile.element, tile.vector
    if what == "fadd":  # half by half: which lanes LLVM's own reduction adds first, the CPU decides
        half = tile.lanes // 2
        while half:
            lanes = ", ".join(f"i32 {i + half if i < half else 'poison'}" for i in range(tile.lanes))
            mask = f"<{tile.lanes} x i32> <{lanes}>"
            other = f.value(f"shufflevector {v} {vector}, {v} poison, {mask}")
            vector = f.value(f"fadd {v} {vector}, {other}")
            half //= 2
        return f.value(f"extractelement {v} {vector}, i64 0")
    return f.call(t, f"@llvm.vector.reduce.fmax.{tile.suffix}", f"{v} {vector}")


def across_lanes(tile: Tile) -> tuple[Definition, ...]:
    """Declare what `across` calls."""
    if tile.lanes == 1:
        return ()
    t, v = tile.element, tile.vector
    largest = f"llvm.vector.reduce.fmax.{tile.suffix}"
    return (Definition(largest, f"declare {t} @{largest}({v})"),)
