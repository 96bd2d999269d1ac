"""The cotangents of queries, keys and values, a head at a time.

Weights w are computed again, a block of queries at a time, and stand in cache beside u = ct v^T, the cotangents of w;
those of the scores, s = w * (u - sum(w * u)), take the place of u. Then dq = s k, and s^T q and w^T ct are added to dk
and dv. One thread computes a head, so sums have one order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from dy2st.runtime.cpu.attention.kernel import few_queries
from dy2st.runtime.cpu.attention.row import TEAM, Row
from dy2st.runtime.cpu.attention.weights import CLEAR, across, across_lanes, each_vector, read_lanes, weights
from dy2st.runtime.cpu.definition import Definition
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.gemm.dots import dot_product
from dy2st.runtime.cpu.gemm.micro import masked_memory, spread
from dy2st.runtime.cpu.gemm.packing import packing
from dy2st.runtime.cpu.gemm.panels import panels
from dy2st.runtime.cpu.gemm.tile import Tile, tile
from dy2st.runtime.cpu.integers import any_of, compare, least, minus, negation, plus, times
from dy2st.runtime.cpu.target import Target
from dy2st.runtime.cpu.threads.fork import RANGE, forked

_PARAMETERS = (
    *(("ptr", f"%{name}") for name in ("q", "k", "v", "mask", "ct", "dq", "dk", "dv")), ("ptr", "%row"),
    ("ptr", "%scratch"),
)  # fmt: skip
"""The mask is null where there is none; dq, dk and dv are dense."""
_STEP_COST, _WEIGHT_COST = 18, 800
"""Picoseconds of a multiplication, and of a weight beside."""


@functools.cache
def attention_gradient_kernel(dtype: str, target: Target) -> Definition:
    """Return `void @dy2st.attention_grad.f32(q, k, v, mask, ct, dq, dk, dv, row, scratch)`."""
    t = tile(dtype, target)
    f = Function(f"dy2st.attention_grad.{dtype}", _PARAMETERS, linkage="internal", also="nounwind")
    row, heads = Row(f, t), _heads(t, target.strict)
    steps = times(f, plus(f, times(f, row["features"], 3), times(f, row["values"], 2)), _STEP_COST)
    cost = times(f, row["queries"], row["keys"], plus(f, steps, _WEIGHT_COST))
    needs = (heads, forked(f, heads.name, _PARAMETERS, row.heads, cost, TEAM))
    f.ret()
    return Definition(f.name, f.text(), needs)


@functools.cache
def attention_gradient_scratch(dtype: str, target: Target) -> Definition:
    """Return `i64 @dy2st.attention_grad.f32.scratch(row)`."""
    name = f"dy2st.attention_grad.{dtype}.scratch"
    f = Function(name, (("ptr", "%row"),), "i64", linkage="internal", also="nounwind")
    f.ret("i64", times(f, _room(f, Row(f, tile(dtype, target))), TEAM))
    return Definition(f.name, f.text())


def _room(f: Function, row: Row) -> str:
    """Write how many bytes a thread needs."""
    return plus(f, row.key_bytes, row.slope_bytes, row.room_bytes, row.room_bytes)


def _heads(t: Tile, strict: bool) -> Definition:
    """Return the function that computes the cotangents of some heads."""
    f = Function(
        f"dy2st.attention_grad.{t.dtype}.heads", (*_PARAMETERS, *RANGE), linkage="internal", also="noinline nounwind"
    )
    row, pack, block = Row(f, t), packing(t, True), _block(t, strict)
    keys = f.offset("%scratch", times(f, "%who", _room(f, row)))
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


def _block(t: Tile, strict: bool) -> Definition:
    """Return the function that goes through a block of queries of a head."""
    given = (
        *_PARAMETERS[:-1],
        ("ptr", "%keys"),
        ("ptr", "%values"),
        ("ptr", "%scores"),
        ("i64", "%head"),
        ("i64", "%first"),
    )
    f = Function(f"dy2st.attention_grad.{t.dtype}.block", given, linkage="internal", also="noinline nounwind")
    row, multiply, dots, weigh, slope = Row(f, t), panels(t), dot_product(t), weights(t, strict), _slopes(t)
    size = t.size
    count, apart = least(f, minus(f, row["queries"], "%first"), row.block), times(f, row.width, size)
    keys = row.needed("%first", count)
    slopes, few = f.offset("%scores", row.room_bytes), few_queries(f, row)
    apart_of = {name: times(f, row[f"{name}_row"], size) for name in ("q", "k", "v", "ct", "mask")}
    place = {name: f.offset(f"%{name}", row.place(name, "%head"), t.element) for name in ("q", "k", "v", "ct")}
    for name in ("q", "ct"):
        place[name] = f.offset(place[name], times(f, "%first", apart_of[name]))
    for left, right, packed, extent, made in (("q", "k", "%keys", "features", "%scores"),
                                              ("ct", "v", "%values", "values", slopes)):  # fmt: skip
        given = f"ptr {place[left]}", f"i64 {apart_of[left]}"
        with f.when(few):
            f.call("void", f"@{dots.name}", *given, f"ptr {place[right]}", f"i64 {apart_of[right]}", f"ptr {made}",
                   f"i64 {apart}", f"i64 {size}", f"i64 {count}", f"i64 {keys}", f"i64 {row[extent]}",
                   "i1 false")  # fmt: skip
        with f.when(negation(f, few)):
            f.call("void", f"@{multiply.name}", *given, f"i64 {size}", f"ptr {packed}", "i64 0", f"ptr {made}",
                   f"i64 {apart}", f"i64 {count}", f"i64 {keys}", f"i64 {row[extent]}", "i1 false",
                   "i1 true")  # fmt: skip
    at = plus(f, row.place("mask", "%head"), times(f, "%first", row["mask_row"]))
    mask = f.value(f"getelementptr {t.element}, ptr %mask, i64 {at}")
    mask = f.value(f"select i1 {f.value('icmp eq ptr %mask, null')}, ptr null, ptr {mask}")
    f.call("void", f"@{weigh.name}", "ptr %scores", f"i64 {apart}", f"ptr {mask}", f"i64 {apart_of['mask']}",
           f"i64 {row['mask_column']}", f"i64 {count}", f"i64 {keys}",
           f"i64 {row.seen('%first')}", f"i64 {row['causal']}")  # fmt: skip
    f.call("void", f"@{slope.name}", "ptr %scores", f"ptr {slopes}", f"i64 {apart}", f"i64 {count}", f"i64 {keys}")
    along, down = (f"i64 {apart}", f"i64 {size}"), (f"i64 {size}", f"i64 {apart}")
    later = any_of(f, row.causal, compare(f, "ne", "%first", 0))  # then keys that the first block needs are not all
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
        f.call("void", f"@{multiply.name}", f"ptr {left}", *steps, f"ptr {place[right]}", f"i64 {apart_of[right]}",
               f"ptr {there}", f"i64 {width}", f"i64 {rows}", f"i64 {row[extent]}", f"i64 {inner}", f"i1 {adds}",
               "i1 false")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (multiply, dots, weigh, slope))


def _slopes(tile: Tile) -> Definition:
    """Return the function that makes x of each row to w * (x - sum(w * x))."""
    given = (("ptr", "%weights"), ("ptr", "%slopes"), ("i64", "%apart"), ("i64", "%rows"), ("i64", "%count"))
    f = Function(f"dy2st.attention_grad.{tile.dtype}.slopes", given, linkage="internal", also="noinline nounwind")
    v = tile.vector
    with f.loop("%rows") as i:
        before = times(f, i, "%apart")
        w_row, x_row, total = f.offset("%weights", before), f.offset("%slopes", before), f.slot(v)
        f.store(v, "zeroinitializer", total)

        def weighed(x: str, at: str, row: str = w_row) -> str:
            return f.value(f"fmul {v} {read_lanes(f, tile, row, at)}, {x}")

        def added(x: str, at: str, total: str = total, weighed: Callable[[str, str], str] = weighed) -> str:
            f.store(v, f.value(f"fadd {v} {f.load(v, total)}, {weighed(x, at)}"), total)
            return x

        each_vector(f, tile, x_row, added, writes=False)
        mean = spread(f, tile, across(f, tile, "fadd", f.load(v, total)))

        def off(x: str, at: str, mean: str = mean, weighed: Callable[[str, str], str] = weighed) -> str:
            return weighed(f.value(f"fsub {v} {x}, {mean}"), at)

        each_vector(f, tile, x_row, off)
    f.ret()
    return Definition(f.name, f.text(), (*across_lanes(tile), *(masked_memory(tile) if tile.lanes > 1 else ())))
