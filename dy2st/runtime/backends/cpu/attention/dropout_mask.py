"""Weights that are dropped: what each weight of a row is multiplied by, from random bits (vector_ops/philox.py)."""

from __future__ import annotations

from dy2st.records import replace
from dy2st.runtime.backends.cpu.attention.shape_descriptor import PAST_ROW, AttentionShape
from dy2st.runtime.backends.cpu.attention.softmax_rows import each_vector, read_lanes
from dy2st.runtime.backends.cpu.gemm.microkernel import masked_memory, spread
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import minus, plus, rounded_down, times
from dy2st.runtime.backends.cpu.loop_nests.schedule import vectors
from dy2st.runtime.backends.cpu.vector_ops.philox import random_uniform

_DRAW = ("%seed", "%draw", "%number", "%count")


def kept(tile: Tile) -> Definition:
    """Return `ptr @dy2st.attention.f32.kept(room, seed, draw, number, count, keep, factor)`.

    It writes the factor or 0 for each of `count` elements of a draw from a number on, and returns where the first one
    stands: in a room of so many elements and PAST_ROW.
    """
    wide = replace(tile, lanes=tile.lanes * vectors(tile.lanes))
    t, v, uniform = tile.element, wide.vector, random_uniform(tile.dtype, wide.lanes)
    given = (("ptr", "%room"), *(("i64", name) for name in _DRAW), (t, "%keep"), (t, "%factor"))
    f = LLVMFunction(f"dy2st.attention.{tile.dtype}.kept", given, "ptr", linkage="internal", also="noinline nounwind")
    start = rounded_down(f, "%number", wide.lanes)
    ahead = minus(f, "%number", start)
    keep, factor = spread(f, wide, "%keep"), spread(f, wide, "%factor")
    kind = "i1" if wide.lanes == 1 else f"<{wide.lanes} x i1>"
    with f.loop(plus(f, ahead, "%count"), step=wide.lanes) as at:
        u = f.call(v, f"@{uniform.name}", "i64 %seed", "i64 %draw", f"i64 {plus(f, start, at)}")
        below = f.value(f"fcmp olt {v} {u}, {keep}")
        chosen = f.value(f"select {kind} {below}, {v} {factor}, {v} {wide.splat('0.0')}")
        f.do(f"store {v} {chosen}, ptr {f.offset('%room', at, t)}, align {tile.size}")
    f.ret("ptr", f.offset("%room", ahead, t))
    return Definition(f.name, f.text(), (uniform,))


def kept_in(f: LLVMFunction, tile: Tile, row: AttentionShape, room: str, number: str, count: str) -> str:
    """Write a call of it for a row whose weights begin with a number of the draw."""
    numbers = (f"i64 {n}" for n in (row["seed"], row["draw"], number, count))
    shares = (f"{tile.element} {row.share(name)}" for name in ("keep", "factor"))
    return f.call("ptr", f"@{kept(tile).name}", f"ptr {room}", *numbers, *shares)


def dropping(tile: Tile) -> Definition:
    """Return `void @dy2st.attention.f32.dropping(scores, apart, rows, count, number, room, row)`.

    It multiplies rows of weights, `apart` bytes apart; the first begins with a number of the draw.
    """
    given = (("ptr", "%scores"), *(("i64", f"%{n}") for n in ("apart", "rows", "count", "number")),
             ("ptr", "%room"), ("ptr", "%row"))  # fmt: skip
    f = LLVMFunction(f"dy2st.attention.{tile.dtype}.dropping", given, linkage="internal", also="noinline nounwind")
    row, v = AttentionShape(f, tile), tile.vector
    with f.loop("%rows") as i:
        number = plus(f, "%number", times(f, i, row["keys"]))
        shares = kept_in(f, tile, row, "%room", number, "%count")
        each_vector(
            f, tile, f.offset("%scores", times(f, i, "%apart")),
            lambda x, at, shares=shares: f.value(f"fmul {v} {x}, {read_lanes(f, tile, shares, at)}"),
        )  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (kept(tile), *(masked_memory(tile) if tile.lanes > 1 else ())))


def room_of_shares(f: LLVMFunction, tile: Tile, row: AttentionShape, drops: bool) -> str:
    """Write how many bytes a thread needs for what a row of weights is multiplied by."""
    return times(f, plus(f, row.width, PAST_ROW), tile.size) if drops else "0"
