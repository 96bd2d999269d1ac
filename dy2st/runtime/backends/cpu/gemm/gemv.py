"""One row times a small packed B, as in each turn of a loop over states: all in one function.

Between `packed_kernel` and the kernel in registers there are five calls, which split rows, columns and panels. For a
row and a small B they take as long as the arithmetic. The kernels are the same. Panels that are as wide as a kernel
holds have a loop of their own, which does little more than to step from one to the next.
"""

from __future__ import annotations

import functools

from dy2st.records import replace
from dy2st.runtime.backends.cpu.gemm.microkernel import micro_kernel
from dy2st.runtime.backends.cpu.gemm.panels import masked_widths, panel_loop, widest_panels
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, minus, negation, times

MOST = 1 << 14
"""The elements of a B that is small."""
_PARAMETERS = (
    ("ptr", "%a"), ("i64", "%a_step"), ("ptr", "%b"), ("ptr", "%c"), ("i64", "%n"), ("i64", "%k"),
    ("i1", "%accumulate"), ("i1", "%backwards"),
)  # fmt: skip


@functools.cache
def packed_row(tile: Tile) -> Definition:
    """Return `void @dy2st.gemm.f32.row(a, a_step, b, c, n, k, accumulate, backwards)`: B is packed, in one block."""
    f = LLVMFunction(f"dy2st.gemm.{tile.dtype}.row", _PARAMETERS, linkage="internal", also="noinline nounwind")
    needs: list[Definition] = []
    full = widest_panels(f, tile, "%n")
    begins = times(f, full, tile.vectors * tile.lanes)
    turned = f.value("zext i1 %backwards to i64")
    with f.loop("2", hint="half") as half:
        first = compare(f, "eq", half, turned)
        with f.when(first, "widest"):
            _widest(f, tile, full, needs)
        with f.when(all_of(f, negation(f, first), compare(f, "slt", begins, "%n")), "rest"):
            _rest(f, tile, begins, needs)
    f.ret()
    return Definition(f.name, f.text(), tuple(needs))


def _widest(f: LLVMFunction, tile: Tile, full: str, needs: list[Definition]) -> None:
    """Write the panels that are as wide as a kernel holds."""
    kernel = micro_kernel(tile, 1, tile.vectors, masked=False, inlined=True)
    needs.append(kernel)
    row = tile.vectors * tile.lanes * tile.size
    last = minus(f, full, 1)
    with f.loop(full, hint="panel") as turn:
        number = f.value(f"select i1 %backwards, i64 {minus(f, last, turn)}, i64 {turn}")
        along = times(f, number, row)
        b, c = f.offset("%b", times(f, along, "%k")), f.offset("%c", along)
        f.call("void", f"@{kernel.name}", "ptr %a", "i64 0", "i64 %a_step", f"ptr {b}", f"i64 {row}", f"ptr {c}",
               "i64 0", "i64 1", "i64 0", "i64 %k", "i1 %accumulate")  # fmt: skip


def _rest(f: LLVMFunction, tile: Tile, start: str, needs: list[Definition]) -> None:
    """Write the panels from a column on, which are narrower."""

    def call(kernel: Definition, condition: str, *operands: str) -> None:
        needs.append(kernel)
        with f.when(condition):
            f.call("void", f"@{kernel.name}", *operands)

    with panel_loop(f, tile, start, "%backwards") as (j, vectors, left):
        bytes_along = times(f, j, tile.size)
        operands = (
            "ptr %a", "i64 0", "i64 %a_step", f"ptr {f.offset('%b', times(f, bytes_along, '%k'))}",
            f"i64 {times(f, vectors, tile.lanes * tile.size)}", f"ptr {f.offset('%c', bytes_along)}", "i64 0", "i64 1",
            f"i64 {left}", "i64 %k", "i1 %accumulate",
        )  # fmt: skip
        for width in range(max(tile.vectors - 1, 2), 1, -1):
            kernel = micro_kernel(tile, 1, width, masked=False, inlined=True)
            call(kernel, compare(f, "eq", vectors, width), *operands)
        one = compare(f, "eq", vectors, 1)
        if tile.lanes > 1:
            narrow = compare(f, "slt", left, tile.lanes)
            for lanes, condition in masked_widths(f, tile, left).items():
                kernel = micro_kernel(replace(tile, lanes=lanes), 1, 1, masked=True, inlined=True)
                call(kernel, condition, *operands)
            one = all_of(f, one, negation(f, narrow))
        call(micro_kernel(tile, 1, 1, masked=False, inlined=True), one, *operands)
