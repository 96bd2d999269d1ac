"""softmax(q k^T + mask) v for each head, a block of queries at a time.

Keys and values are packed once, or read as they lie where queries are few; the scores of a block stand in cache until
its results are written, so that no more than a few rows of weights are ever in memory.
"""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.attention.dropout_mask import dropping, room_of_shares
from dy2st.runtime.backends.cpu.attention.shape_descriptor import TEAM, AttentionShape, named
from dy2st.runtime.backends.cpu.attention.softmax_rows import weights
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.dot_product import dot_product
from dy2st.runtime.backends.cpu.gemm.packing import packing
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import any_of, compare, least, minus, negation, plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_PARAMETERS = (
    ("ptr", "%q"), ("ptr", "%k"), ("ptr", "%v"), ("ptr", "%mask"), ("ptr", "%out"), ("ptr", "%row"),
    ("ptr", "%scratch"),
)  # fmt: skip
"""The mask is null where there is none; results are dense."""
_FEW = 8
_STEP_COST, _WEIGHT_COST, _PACK_COST = 18, 500, 500
"""Picoseconds of a multiplication, of a weight, of an element that is packed."""


@functools.cache
def attention_kernel(dtype: str, target: Target, drops: bool = False) -> Definition:
    """Return `void @dy2st.attention.f32(q, k, v, mask, out, row, scratch)`."""
    t = tile(dtype, target)
    f = LLVMFunction(named("attention", dtype, drops), _PARAMETERS, linkage="internal", also="nounwind")
    row = AttentionShape(f, t)
    pack, block = _pack(t), _block(t, target.strict, drops)
    packed = times(f, row["keys"], plus(f, row["features"], row["values"]))
    heads = f.value(f"select i1 {few_queries(f, row)}, i64 0, i64 {row.heads}")
    needs = [pack, block, forked(f, pack.name, _PARAMETERS, heads, times(f, packed, _PACK_COST))]
    scores = times(f, row.block, row["keys"])
    steps = times(f, plus(f, row["features"], row["values"]), _STEP_COST)
    cost = times(f, scores, plus(f, steps, _WEIGHT_COST))
    needs.append(forked(f, block.name, _PARAMETERS, times(f, row.heads, row.blocks), cost, TEAM))
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


@functools.cache
def attention_scratch(dtype: str, target: Target, drops: bool = False) -> Definition:
    """Return `i64 @dy2st.attention.f32.scratch(row)`."""
    t = tile(dtype, target)
    name = named("attention", dtype, drops, ".scratch")
    f = LLVMFunction(name, (("ptr", "%row"),), "i64", linkage="internal", also="nounwind")
    row = AttentionShape(f, t)
    packed = times(f, row.heads, plus(f, row.key_bytes, row.value_bytes))
    f.ret("i64", plus(f, packed, times(f, plus(f, row.room_bytes, room_of_shares(f, t, row, drops)), TEAM)))
    return Definition(f.name, f.text())


def few_queries(f: LLVMFunction, row: AttentionShape) -> str:
    """Write whether packing keys and values would take longer than to read them as they lie."""
    return compare(f, "sle", row["queries"], _FEW)


def _pack(t: Tile) -> Definition:
    """Return the function that packs the keys and values of some heads."""
    f = LLVMFunction(
        f"dy2st.attention.{t.dtype}.pack", (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind"
    )
    row, columns, rows = AttentionShape(f, t), packing(t, True), packing(t, False)
    with f.loop("%to", start="%from") as head:
        keys, values = _packed(f, row, head)
        k, v = (f.offset(f"%{name}", row.place(name, head), t.element) for name in "kv")
        f.call("void", f"@{columns.name}", f"ptr {k}", f"i64 {times(f, row['k_row'], t.size)}", f"i64 {row['keys']}",
               f"i64 {row['features']}", f"ptr {keys}")  # fmt: skip
        f.call("void", f"@{rows.name}", f"ptr {v}", f"i64 {times(f, row['v_row'], t.size)}", f"i64 {row['values']}",
               f"i64 {row['keys']}", f"ptr {values}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (columns, rows))


def _packed(f: LLVMFunction, row: AttentionShape, head: str) -> tuple[str, str]:
    """Write where the packed keys and values of a head stand."""
    keys = f.offset("%scratch", times(f, head, row.key_bytes))
    behind = f.offset("%scratch", times(f, row.heads, row.key_bytes))
    return keys, f.offset(behind, times(f, head, row.value_bytes))


def _block(t: Tile, strict: bool, drops: bool) -> Definition:
    """Return the function that computes the results of some blocks of queries."""
    name = named("attention", t.dtype, drops, ".block")
    f = LLVMFunction(name, (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind")
    row, multiply, dots, weigh, drop = AttentionShape(f, t), panels(t), dot_product(t), weights(t, strict), dropping(t)
    packed = times(f, row.heads, plus(f, row.key_bytes, row.value_bytes))
    scores = f.offset(
        f.offset("%scratch", packed), times(f, "%who", plus(f, row.room_bytes, room_of_shares(f, t, row, drops)))
    )
    apart, size = times(f, row.width, t.size), t.size
    with f.loop("%to", start="%from") as unit:
        head = f.value(f"udiv i64 {unit}, {row.blocks}")
        first = times(f, f.value(f"urem i64 {unit}, {row.blocks}"), row.block)
        count = least(f, minus(f, row["queries"], first), row.block)
        needed = row.needed(first, count)
        keys, values = _packed(f, row, head)
        q = f.offset("%q", plus(f, row.place("q", head), times(f, first, row["q_row"])), t.element)
        few = few_queries(f, row)
        q_row, k_row, v_row = (times(f, row[f"{name}_row"], size) for name in "qkv")
        with f.when(few):
            k = f.offset("%k", row.place("k", head), t.element)
            f.call("void", f"@{dots.name}", f"ptr {q}", f"i64 {q_row}", f"ptr {k}", f"i64 {k_row}", f"ptr {scores}",
                   f"i64 {apart}", f"i64 {size}", f"i64 {count}", f"i64 {needed}", f"i64 {row['features']}",
                   "i1 false")  # fmt: skip
        with f.when(negation(f, few)):
            f.call("void", f"@{multiply.name}", f"ptr {q}", f"i64 {q_row}", f"i64 {size}", f"ptr {keys}", "i64 0",
                   f"ptr {scores}", f"i64 {apart}", f"i64 {count}", f"i64 {needed}", f"i64 {row['features']}",
                   "i1 false", "i1 true")  # fmt: skip
        mask = f.value(f"getelementptr {t.element}, ptr %mask, i64 "
                       f"{plus(f, row.place('mask', head), times(f, first, row['mask_row']))}")  # fmt: skip
        mask = f.value(f"select i1 {f.value('icmp eq ptr %mask, null')}, ptr null, ptr {mask}")
        f.call("void", f"@{weigh.name}", f"ptr {scores}", f"i64 {apart}", f"ptr {mask}",
               f"i64 {times(f, row['mask_row'], size)}", f"i64 {row['mask_column']}", f"i64 {count}",
               f"i64 {needed}", f"i64 {row.seen(first)}", f"i64 {row['causal']}")  # fmt: skip
        number = plus(f, times(f, head, row["queries"]), first)
        if drops:
            drawn = plus(f, times(f, row.place("drawn", head), row["queries"]), first)
            f.call("void", f"@{drop.name}", f"ptr {scores}", f"i64 {apart}", f"i64 {count}", f"i64 {needed}",
                   f"i64 {times(f, drawn, row['keys'])}", f"ptr {f.offset(scores, row.room_bytes)}",
                   "ptr %row")  # fmt: skip
        out = f.offset("%out", times(f, number, row["values"]), t.element)
        lying = f.offset("%v", row.place("v", head), t.element)
        lies = any_of(f, few, row.causal)  # packed rows are as long as there are keys
        right = f.value(f"select i1 {lies}, ptr {lying}, ptr {values}")
        f.call("void", f"@{multiply.name}", f"ptr {scores}", f"i64 {apart}", f"i64 {size}", f"ptr {right}",
               f"i64 {v_row}", f"ptr {out}", f"i64 {times(f, row['values'], size)}", f"i64 {count}",
               f"i64 {row['values']}", f"i64 {needed}", "i1 false", f"i1 {negation(f, lies)}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (multiply, dots, weigh, *((drop,) if drops else ())))
