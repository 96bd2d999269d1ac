"""A times a weight of integers, C = A (W * scale) transposed: the integers become numbers where they are read.

    void @dy2st.gemm.f32.quantized8(a, w, scale, c, m, n, k, group, scratch, after, top)

Up to `_SKINNY` rows of A take dot products with rows of W as they lie: integers become numbers in registers, so a
product that memory bounds reads a quarter of what it would (an eighth of 4 bits). With more rows, blocks of W are
packed as numbers (quantized_packing.py), and the kernels of all products read them. A group has a scale of its own for
each row; where there are none, the group is all of k. Matrices lie in rows without gaps.
"""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.dot_product import DotBlock, clamped, dot_needs
from dy2st.runtime.backends.cpu.gemm.epilogue import AFTER, finished
from dy2st.runtime.backends.cpu.gemm.microkernel import lane_mask, masked_load, spread
from dy2st.runtime.backends.cpu.gemm.parallel import shared_panels
from dy2st.runtime.backends.cpu.gemm.quantized_packing import halves, masked_bytes, read_numbers, shared_packing
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import (
    any_of,
    compare,
    least,
    minus,
    most,
    negation,
    plus,
    rounded_down,
    rounded_up,
    times,
)
from dy2st.runtime.backends.cpu.llvm_ir.prefetch import PREFETCH, prefetch
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked

_SKINNY = 16
"""Up to so many rows, packing W would cost more than it saves."""
_COLUMNS = 4
"""Rows of W whose dot products are taken together."""
_UNROLLED = 4
"""The vectors of a row that one turn of the loop takes: as many bytes as a line of the cache, where they are widest."""
_STEP_COST, _ENDS = 300, 4
"""Picoseconds of one multiplication and addition of vectors, and as how many of them the sum across counts."""
_SHAPE = (("i64", "%m"), ("i64", "%n"), ("i64", "%k"))
_PARAMETERS = (
    ("ptr", "%a"), ("ptr", "%w"), ("ptr", "%scale"), ("ptr", "%c"), *_SHAPE, ("i64", "%group"), ("ptr", "%scratch"),
    *AFTER,
)  # fmt: skip
_DOTS = (
    ("ptr", "%a"), ("ptr", "%w"), ("ptr", "%scale"), ("ptr", "%c"), *_SHAPE, ("i64", "%group"), ("i64", "%columns"),
)  # fmt: skip
"""Of dot products: `n` rows of W from `w` on, of `columns` in all."""


@functools.cache
def quantized_kernel(dtype: str, bits: int, target: Target) -> Definition:
    """Return the function of a product with integers of so many bits; `scratch` as `quantized_scratch` tells."""
    t = tile(dtype, target)
    dots, shared, pack = _dots(t, bits), shared_panels(t), shared_packing(t, bits)
    f = LLVMFunction(_name(dtype, bits), _PARAMETERS, linkage="internal", also="nounwind")
    with f.when(_is_skinny(f)):
        f.call("void", f"@{dots.name}", "ptr %a", "ptr %w", "ptr %scale", "ptr %c", "i64 %m", "i64 %n", "i64 %k",
               "i64 %group", "i64 %n")  # fmt: skip
        finished(f, ("0", "%m"), ("0", "%n"))
        f.ret()
    a_row, c_row = times(f, "%k", t.size), times(f, "%n", t.size)
    with f.loop("%n", step=t.width) as j, f.loop("%k", step=t.depth) as p:
        columns, steps = least(f, minus(f, "%n", j), t.width), least(f, minus(f, "%k", p), t.depth)
        row = j if bits == 8 else f.value(f"lshr i64 {j}, 1")
        w = f.offset("%w", plus(f, times(f, row, "%k"), p))
        scale = f.offset("%scale", times(f, j, t.size))
        f.call("void", f"@{pack.name}", f"ptr {w}", f"ptr {scale}", f"i64 {columns}", f"i64 {steps}", "ptr %scratch",
               "i64 %k", "i64 %group", "i64 %n", f"i64 {p}")  # fmt: skip
        a, c = f.offset("%a", times(f, p, t.size)), f.offset("%c", times(f, j, t.size))
        last = compare(f, "sge", plus(f, p, steps), "%k")
        f.call("void", f"@{shared.name}", f"ptr {a}", f"i64 {a_row}", f"i64 {t.size}", "ptr %scratch", "i64 0",
               f"ptr {c}", f"i64 {c_row}", "i64 %m", f"i64 {columns}", f"i64 {steps}",
               f"i1 {compare(f, 'sgt', p, 0)}", "i1 true",
               f"ptr {f.value(f'select i1 {last}, ptr %after, ptr null')}", "i64 %top", f"i64 {j}")  # fmt: skip
    f.ret()
    return Definition(f.name, f.text(), (dots, shared, pack))


@functools.cache
def quantized_scratch(dtype: str, bits: int, target: Target) -> Definition:
    """Return the function `i64 @dy2st.gemm.f32.quantized8.scratch(m, n, k)`: the bytes of scratch it needs."""
    t = tile(dtype, target)
    f = LLVMFunction(f"{_name(dtype, bits)}.scratch", _SHAPE, "i64", linkage="internal", also="nounwind alwaysinline")
    columns, steps = least(f, rounded_up(f, "%n", t.lanes), t.width), least(f, "%k", t.depth)
    size = times(f, columns, steps, t.size)
    f.ret("i64", f.value(f"select i1 {_is_skinny(f)}, i64 0, i64 {size}"))
    return Definition(f.name, f.text())


def _name(dtype: str, bits: int) -> str:
    return f"dy2st.gemm.{dtype}.quantized{bits}"


def _is_skinny(f: LLVMFunction) -> str:
    return any_of(f, compare(f, "sle", "%m", _SKINNY), compare(f, "eq", "%k", 0))


@functools.cache
def _dots(t: Tile, bits: int) -> Definition:
    """Return the function that computes all of C by dot products, its columns split between threads."""
    body = _range(t, bits)
    f = LLVMFunction(f"{_name(t.dtype, bits)}.dot", _DOTS, linkage="internal", also="noinline nounwind")
    steps = plus(f, f.value(f"sdiv i64 %k, {t.lanes}"), _ENDS)
    cost = times(f, steps, plus(f, "%m", 1), _COLUMNS * _STEP_COST)
    part = forked(f, body.name, _DOTS, most(f, f.value(f"sdiv i64 %n, {_COLUMNS}"), 1), cost)
    f.ret()
    return Definition(f.name, f.text(), (body, part))


@functools.cache
def _range(t: Tile, bits: int) -> Definition:
    """Return the function that computes some columns of C, one row or several at a time."""
    f = LLVMFunction(f"{_name(t.dtype, bits)}.dots", (*_DOTS, *RANGE), linkage="internal", also="noinline nounwind")
    rows = t.dots[0]
    one, many = _kernel(t, bits, 1), _kernel(t, bits, rows)
    single = compare(f, "eq", "%m", 1)
    last = compare(f, "sge", "%to", f.value(f"sdiv i64 %n, {_COLUMNS}"))
    stop = f.value(f"select i1 {last}, i64 %n, i64 {times(f, '%to', _COLUMNS)}")
    a_row, c_row = times(f, "%k", t.size), times(f, "%columns", t.size)
    with f.loop(stop, step=_COLUMNS, start=times(f, "%from", _COLUMNS)) as j:
        row = j if bits == 8 else f.value(f"lshr i64 {j}, 1")
        weights = (f"ptr {f.offset('%w', times(f, row, '%k'))}", f"ptr {f.offset('%scale', times(f, j, t.size))}")
        c, left = f.offset("%c", times(f, j, t.size)), minus(f, "%n", j)
        rest = (f"i64 {left}", "i64 %k", "i64 %group", "i64 %columns")
        with f.when(single):
            f.call("void", f"@{one.name}", "ptr %a", *weights, f"ptr {c}", "i64 1", *rest)
        with f.when(negation(f, single)), f.loop("%m", step=rows) as i:
            a, here = f.offset("%a", times(f, i, a_row)), f.offset(c, times(f, i, c_row))
            f.call("void", f"@{many.name}", f"ptr {a}", *weights, f"ptr {here}", f"i64 {minus(f, '%m', i)}", *rest)
    f.ret()
    return Definition(f.name, f.text(), (one, many))


@functools.cache
def _kernel(t: Tile, bits: int, rows: int) -> Definition:
    """Return the kernel for `rows` rows of A by `_COLUMNS` of W, those past the last copies of the last."""
    f = LLVMFunction(f"{_name(t.dtype, bits)}.dot.{rows}", _DOTS, linkage="internal", also="noinline nounwind")
    f.do(f"%c_column = add i64 0, {t.size}")
    f.do(f"%c_row = mul i64 %columns, {t.size}")
    a_rows, _ = clamped(f, "%a", times(f, "%k", t.size), "%m", rows)
    in_byte = 8 // bits
    bytes_ = f.value(f"sdiv i64 %n, {in_byte}")
    w_rows, numbers = clamped(f, "%w", "%k", bytes_, _COLUMNS // in_byte)
    at = [plus(f, times(f, n, in_byte), i) for n in numbers for i in range(in_byte)]
    total = DotBlock(f, t, a_rows, ["%w"] * _COLUMNS)
    following = times(f, "%k", len(w_rows))
    with f.loop("%k", step="%group") as start:
        stop = least(f, plus(f, start, "%group"), "%k")
        of_group = f.offset("%scale", times(f, f.value(f"udiv i64 {start}, %group"), "%c_row"))
        part = DotBlock(f, t, a_rows, ["%w"] * _COLUMNS)

        def add(p: str, part: DotBlock = part) -> None:
            along = times(f, p, t.size)
            left = [f.value(f"load {t.vector}, ptr {f.offset(a, along)}, align {t.size}") for a in a_rows]
            part.add_vectors(left, [x for w in w_rows for x in halves(f, t, read_numbers(f, t, f.offset(w, p)), bits)])

        whole = plus(f, start, rounded_down(f, minus(f, stop, start), t.lanes))
        most_whole = plus(f, start, rounded_down(f, minus(f, stop, start), _UNROLLED * t.lanes))
        with f.loop(most_whole, step=_UNROLLED * t.lanes, start=start) as p:
            for w in w_rows:  # rows that are read next may stand in other pages
                prefetch(f, f.offset(f.offset(w, following), p))
            for i in range(_UNROLLED):
                add(plus(f, p, i * t.lanes))
        with f.loop(whole, step=t.lanes, start=most_whole) as p:
            add(p)
        rest = minus(f, stop, whole)
        with f.when(compare(f, "sgt", rest, 0)):
            along, mask = times(f, whole, t.size), lane_mask(f, t.lanes, rest)
            left = [masked_load(f, t, f.offset(a, along), mask) for a in a_rows]
            read = [read_numbers(f, t, f.offset(w, whole), mask) for w in w_rows]
            part.add_vectors(left, [x for one in read for x in halves(f, t, one, bits)])
        total.add_scaled(part, [spread(f, t, f.load(t.element, f.offset(of_group, i, t.element))) for i in at])
    total.write("false")
    f.ret()
    return Definition(f.name, f.text(), (*dot_needs(t), masked_bytes(t), PREFETCH))
