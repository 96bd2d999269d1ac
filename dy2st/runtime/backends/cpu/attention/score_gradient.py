"""The cotangents of scores, a block of queries of a head at a time.

Weights w are computed again and stand in cache beside u = ct v^T, the cotangents of w; those of the scores,
s = w * (u - sum(w * u)), take the place of u. Where weights are dropped both w, at last, and u are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.runtime.backends.cpu.attention.dropout_mask import kept, kept_in, room_of_shares
from dy2st.runtime.backends.cpu.attention.forward import few_queries
from dy2st.runtime.backends.cpu.attention.shape_descriptor import AttentionShape, named
from dy2st.runtime.backends.cpu.attention.softmax_rows import across, across_lanes, each_vector, read_lanes, weights
from dy2st.runtime.backends.cpu.gemm.dot_product import dot_product
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory, spread
from dy2st.runtime.backends.cpu.gemm.panels import panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import least, minus, negation, plus, times

PARTS = tuple(("ptr", f"%{name}") for name in ("q", "k", "v", "mask", "ct"))
"""What is read; the mask is null where there is none."""
BLOCK = (("ptr", "%keys"), ("ptr", "%values"), ("ptr", "%scores"), ("i64", "%head"), ("i64", "%first"))
"""Packed keys and values, the room of a thread, and which queries of which head."""
STEP_COST, WEIGHT_COST = 18, 800
"""Picoseconds of a multiplication, and of a weight beside."""


def slope_room(f: LLVMFunction, tile: Tile, row: AttentionShape, drops: bool) -> str:
    """Write how many bytes a thread needs for blocks."""
    return plus(f, row.room_bytes, row.room_bytes, room_of_shares(f, tile, row, drops))


def block_of(f: LLVMFunction, row: AttentionShape) -> tuple[str, str]:
    """Write how many queries a block has, and how many of the first keys it needs."""
    count = least(f, minus(f, row["queries"], "%first"), row.block)
    return count, row.needed("%first", count)


def block_slopes(t: Tile, strict: bool, drops: bool) -> Definition:
    """Return `void @dy2st.attention_grad.f32.block_slopes(<PARTS>, row, <BLOCK>)`: weights, and behind them slopes."""
    name = named("attention_grad", t.dtype, drops, ".block_slopes")
    f = LLVMFunction(name, (*PARTS, ("ptr", "%row"), *BLOCK), linkage="internal", also="noinline nounwind")
    row, multiply, dots, weigh, slope = (
        AttentionShape(f, t),
        panels(t),
        dot_product(t),
        weights(t, strict),
        _slopes(t, drops),
    )
    size, few, (count, keys) = t.size, few_queries(f, row), block_of(f, row)
    slopes, apart = f.offset("%scores", row.room_bytes), times(f, row.width, size)
    for left, right, packed, extent, made in (("q", "k", "%keys", "features", "%scores"),
                                              ("ct", "v", "%values", "values", slopes)):  # fmt: skip
        place = {name: f.offset(f"%{name}", row.place(name, "%head"), t.element) for name in (left, right)}
        given = f"ptr {f.offset(place[left], times(f, '%first', row.bytes(left)))}", f"i64 {row.bytes(left)}"
        with f.when(few):
            f.call("void", f"@{dots.name}", *given, f"ptr {place[right]}", f"i64 {row.bytes(right)}", f"ptr {made}",
                   f"i64 {apart}", f"i64 {size}", f"i64 {count}", f"i64 {keys}", f"i64 {row[extent]}",
                   "i1 false")  # fmt: skip
        with f.when(negation(f, few)):
            f.call("void", f"@{multiply.name}", *given, f"i64 {size}", f"ptr {packed}", "i64 0", f"ptr {made}",
                   f"i64 {apart}", f"i64 {count}", f"i64 {keys}", f"i64 {row[extent]}", "i1 false",
                   "i1 true")  # fmt: skip
    at = plus(f, row.place("mask", "%head"), times(f, "%first", row["mask_row"]))
    mask = f.value(f"getelementptr {t.element}, ptr %mask, i64 {at}")
    mask = f.value(f"select i1 {f.value('icmp eq ptr %mask, null')}, ptr null, ptr {mask}")
    f.call("void", f"@{weigh.name}", "ptr %scores", f"i64 {apart}", f"ptr {mask}", f"i64 {row.bytes('mask')}",
           f"i64 {row['mask_column']}", f"i64 {count}", f"i64 {keys}",
           f"i64 {row.seen('%first')}", f"i64 {row['causal']}")  # fmt: skip
    matrix = row.place("drawn", "%head")
    number = times(f, plus(f, times(f, matrix, row["queries"]), "%first"), row["keys"])
    given = ("ptr %scores", f"ptr {slopes}", f"i64 {apart}", f"i64 {count}", f"i64 {keys}", f"i64 {number}", "ptr %row")
    f.call("void", f"@{slope.name}", *given)
    f.ret()
    return Definition(f.name, f.text(), (multiply, dots, weigh, slope))


def _slopes(tile: Tile, drops: bool) -> Definition:
    """Return the function that makes x of each row to w * (x - sum(w * x)); where weights are dropped, w and x first.

    What weights are multiplied by stands behind the slopes.
    """
    given = (("ptr", "%weights"), ("ptr", "%slopes"), *(("i64", f"%{n}") for n in ("apart", "rows", "count", "number")),
             ("ptr", "%row"))  # fmt: skip
    f = LLVMFunction(
        named("attention_grad", tile.dtype, drops, ".slopes"), given, linkage="internal", also="noinline nounwind"
    )
    v, row = tile.vector, AttentionShape(f, tile)
    room = f.offset("%slopes", row.room_bytes)

    def product(of: str, x: str, at: str) -> str:
        return f.value(f"fmul {v} {read_lanes(f, tile, of, at)}, {x}")

    with f.loop("%rows") as i:
        before = times(f, i, "%apart")
        w_row, x_row, total = f.offset("%weights", before), f.offset("%slopes", before), f.slot(v)
        f.store(v, "zeroinitializer", total)
        shares = ""
        if drops:
            shares = kept_in(f, tile, row, room, plus(f, "%number", times(f, i, row["keys"])), "%count")

        def added(x: str, at: str, row: str = w_row, total: str = total, shares: str = shares) -> str:
            x = product(shares, x, at) if drops else x
            f.store(v, f.value(f"fadd {v} {f.load(v, total)}, {product(row, x, at)}"), total)
            return x

        each_vector(f, tile, x_row, added, writes=drops)
        mean = spread(f, tile, across(f, tile, "fadd", f.load(v, total)))

        def off(x: str, at: str, mean: str = mean, row: str = w_row) -> str:
            return product(row, f.value(f"fsub {v} {x}, {mean}"), at)

        each_vector(f, tile, x_row, off)
        if drops:
            multiply: Callable[[str, str], str] = lambda x, at, shares=shares: product(shares, x, at)  # noqa: E731
            each_vector(f, tile, w_row, multiply)
    f.ret()
    masked = masked_memory(tile) if tile.lanes > 1 else ()
    return Definition(f.name, f.text(), (*across_lanes(tile), *masked, *((kept(tile),) if drops else ())))
