"""Products with a B that was laid out before, for one that many products have in common.

Packed, B is one block of `Tile.depth` rows after the other, each block as packing.py lays it out, its columns filled up
to whole vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.gemm.epilogue import AFTER, finished
from dy2st.runtime.backends.cpu.gemm.gemv import MOST as SMALL
from dy2st.runtime.backends.cpu.gemm.gemv import packed_row
from dy2st.runtime.backends.cpu.gemm.parallel import shared_packing, shared_panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile, tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, any_of, compare, least, minus, plus, rounded_up, times

_PACKING = (("ptr", "%b"), ("i64", "%ldb"), ("i64", "%n"), ("i64", "%k"), ("ptr", "%packed"))
_PRODUCT = (
    ("ptr", "%a"), ("i64", "%lda"), ("ptr", "%packed"), ("ptr", "%c"), ("i64", "%ldc"), ("i64", "%m"), ("i64", "%n"),
    ("i64", "%k"), ("i1", "%accumulate"), ("i64", "%backwards"), *AFTER,
)  # fmt: skip


def packed_elements(f: LLVMFunction, lanes: int, n: str, k: str) -> str:
    """Write how many elements a packed B of k x n has."""
    return times(f, rounded_up(f, n, lanes), k)


@functools.cache
def packing_kernel(dtype: str, transpose_b: bool, target: Target) -> Definition:
    """Return `void @dy2st.gemm.f32.pack_b.t(b, ldb, n, k, packed)`, which lays a whole B out for `packed_kernel`.

    `packed` has as many elements as `packed_elements` tells.
    """
    t = tile(dtype, target)
    pack = shared_packing(t, transpose_b)
    f = LLVMFunction(f"dy2st.gemm.{dtype}.pack_b.{'t' if transpose_b else 'n'}", _PACKING, linkage="internal",
                 also="nounwind")  # fmt: skip
    row = times(f, "%ldb", t.size)
    with _blocks(f, t) as (p, steps, packed):
        b = f.offset("%b", times(f, p, t.size if transpose_b else row))
        f.call("void", f"@{pack.name}", f"ptr {b}", f"i64 {row}", "i64 %n", f"i64 {steps}", f"ptr {packed}")
    f.ret()
    return Definition(f.name, f.text(), (pack,))


@functools.cache
def packed_kernel(dtype: str, transpose_a: bool, target: Target) -> Definition:
    """Return `void @dy2st.gemm.f32.packed.n(a, lda, packed, c, ldc, m, n, k, accumulate, backwards, after, top)`.

    B was packed. Where `backwards` is not 0, the last columns come first: a loop that takes them in turns finds those
    in cache that the turn before read last.
    """
    t = tile(dtype, target)
    by_panels = shared_panels(t)
    f = LLVMFunction(f"dy2st.gemm.{dtype}.packed.{'t' if transpose_a else 'n'}", _PRODUCT, linkage="internal",
                 also="nounwind")  # fmt: skip
    row, c_row = times(f, "%lda", t.size), times(f, "%ldc", t.size)
    a_row, a_step = (str(t.size), row) if transpose_a else (row, str(t.size))

    def multiply(p: str, steps: str, packed: str, later: str) -> None:
        last = compare(f, "sge", plus(f, p, steps), "%k")
        a = f.offset("%a", times(f, p, a_step))
        f.call("void", f"@{by_panels.name}", f"ptr {a}", f"i64 {a_row}", f"i64 {a_step}", f"ptr {packed}",
               "i64 %backwards", "ptr %c", f"i64 {c_row}", "i64 %m", "i64 %n", f"i64 {steps}", f"i1 {later}", "i1 true",
               f"ptr {f.value(f'select i1 {last}, ptr %after, ptr null')}", "i64 %top", "i64 0")  # fmt: skip

    of_row = packed_row(t)
    one_block = compare(f, "ule", f.value("sub i64 %k, 1"), t.depth - 1)
    small = all_of(f, compare(f, "eq", "%m", 1), one_block, compare(f, "sle", times(f, "%n", "%k"), SMALL))
    with f.when(small):
        turned = compare(f, "ne", "%backwards", 0)
        f.call("void", f"@{of_row.name}", "ptr %a", f"i64 {a_step}", "ptr %packed", "ptr %c", "i64 %n", "i64 %k",
               "i1 %accumulate", f"i1 {turned}")  # fmt: skip
        finished(f, ("0", "%m"), ("0", "%n"))
        f.ret()
    with f.when(compare(f, "eq", "%k", 0)):
        multiply("0", "0", "%packed", "%accumulate")
    with _blocks(f, t) as (p, steps, packed):
        multiply(p, steps, packed, any_of(f, compare(f, "sgt", p, 0), "%accumulate"))
    f.ret()
    return Definition(f.name, f.text(), (by_panels, of_row))


@contextmanager
def _blocks(f: LLVMFunction, t: Tile) -> Iterator[tuple[str, str, str]]:
    """Write a loop over the blocks of B: gives the first row, how many there are, and where they stand packed."""
    with f.loop("%k", step=t.depth) as p:
        before = times(f, packed_elements(f, t.lanes, "%n", p), t.size)
        yield p, least(f, minus(f, "%k", p), t.depth), f.offset("%packed", before)
