"""C = A B panel by panel: columns in groups of as many vectors as a kernel holds, rows in groups of as many rows.

Packed, B is one panel after the other, each row of a panel after the other, the last vector filled up with zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.records import replace
from dy2st.runtime.backends.cpu.gemm.microkernel import PARAMETERS as KERNEL_PARAMETERS
from dy2st.runtime.backends.cpu.gemm.microkernel import SCATTERED, micro_kernel
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, any_of, compare, minus, negation, plus, times

WIDE = 8
"""The vectors of the kernel for one row: such a product reads B once, so it is bound by memory."""
_LEAST_MASKED = 8
"""The lanes of the narrowest vector that is used under a mask."""
BLOCK_ROWS = 128
"""Rows of A that are taken together, so that they stay in cache while the panels of B pass."""
_SHAPE = (("i64", "%m"), ("i64", "%n"), ("i64", "%k"), ("i1", "%accumulate"))
PARAMETERS = (*KERNEL_PARAMETERS[:7], *_SHAPE, ("i1", "%packed"))
"""What `panels` takes. Of a packed B, `b_step` says whether its last panel comes first."""


@functools.cache
def panels(tile: Tile) -> Definition:
    """Return the function that multiplies A with a B that fits the cache, packed or as it lies."""
    name = f"dy2st.gemm.{tile.dtype}.panels"
    f = LLVMFunction(name, PARAMETERS, linkage="internal", also="noinline nounwind")
    wide = micro_kernel(tile, 1, WIDE, masked=False)
    groups = {width: _rows(tile, width) for width in range(tile.vectors, 0, -1)}
    needs = [wide, *groups.values()]
    start = f.slot("i64")
    f.store("i64", "0", start)
    one_row = compare(f, "eq", "%m", 1)
    with f.when(all_of(f, one_row, negation(f, "%packed"))):
        step = WIDE * tile.lanes
        whole = f.value(f"mul i64 {f.value(f'sdiv i64 %n, {step}')}, {step}")
        with f.loop(whole, step=step) as j:
            f.call("void", f"@{wide.name}", *_at_column(f, tile, j, "i64 %b_step", packed=None), "i64 1", f"i64 {step}",
                   "i64 %k", "i1 %accumulate")  # fmt: skip
        f.store("i64", whole, start)
    backwards = all_of(f, "%packed", compare(f, "ne", "%b_step", 0))
    with panel_loop(f, tile, f.load("i64", start), backwards) as (j, vectors, left):
        packed_step = times(f, vectors, tile.lanes * tile.size)
        step = f.value(f"select i1 %packed, i64 {packed_step}, i64 %b_step")
        operands = _at_column(f, tile, j, f"i64 {step}", packed="%packed")
        for width, function in groups.items():
            with f.when(compare(f, "eq", vectors, width)):
                _call_masked_or_not(f, tile, function, width, left, operands, needs)
    f.ret()
    return Definition(name, f.text(), tuple(needs))


def whole_kernels(tile: Tile) -> tuple[Definition, ...]:
    """Return the kernels of whole panels: they do nearly all of the arithmetic of a product that is large."""
    full = {rows: micro_kernel(tile, rows, tile.vectors, masked=False) for rows in (tile.rows, tile.few_rows, 1)}
    return (*full.values(), micro_kernel(tile, 1, WIDE, masked=False))


@functools.cache
def scattered_panels(tile: Tile) -> Definition:
    """Return the function that multiplies A with a B whose rows stand anywhere: `b_rows` holds where."""
    name = f"dy2st.gemm.{tile.dtype}.scattered.panels"
    f = LLVMFunction(name, (*SCATTERED[:7], *_SHAPE), linkage="internal", also="noinline nounwind")
    groups = {width: _rows(tile, width, scattered=True) for width in range(tile.vectors, 0, -1)}
    needs = list(groups.values())
    with panel_loop(f, tile) as (j, vectors, left):
        operands = _at_column(f, tile, j, "ptr %b_rows", packed=None)
        for width, function in groups.items():
            with f.when(compare(f, "eq", vectors, width)):
                _call_masked_or_not(f, tile, function, width, left, operands, needs, scattered=True)
    f.ret()
    return Definition(name, f.text(), tuple(needs))


def _call_masked_or_not(f: LLVMFunction, tile: Tile, function: Definition, width: int, left: str, operands: tuple[str,
        ...],
                        needs: list[Definition], scattered: bool = False) -> None:  # fmt: skip
    operands = (*operands, "i64 %m", f"i64 {left}", "i64 %k", "i1 %accumulate")
    if width > 1 or tile.lanes == 1:
        f.call("void", f"@{function.name}", *operands)
        return
    narrow = compare(f, "slt", left, tile.lanes)
    for lanes, condition in masked_widths(f, tile, left).items():
        masked = _rows(replace(tile, lanes=lanes), 0, scattered)
        needs.append(masked)
        with f.when(condition):
            f.call("void", f"@{masked.name}", *operands)
    with f.when(negation(f, narrow)):
        f.call("void", f"@{function.name}", *operands)


def masked_widths(f: LLVMFunction, tile: Tile, left: str) -> dict[int, str]:
    """Write when the columns left are computed in a masked vector, and when in one of half as many lanes."""
    narrow, half = compare(f, "slt", left, tile.lanes), tile.lanes // 2
    if half < _LEAST_MASKED:
        return {tile.lanes: narrow}
    few = compare(f, "sle", left, half)
    return {half: few, tile.lanes: all_of(f, narrow, negation(f, few))}


@contextmanager
def panel_loop(
    f: LLVMFunction, tile: Tile, start: str = "0", backwards: str | None = None
) -> Iterator[tuple[str, str, str]]:
    """Write a loop over the panels of %n columns: gives the first column, the vectors, and the columns left.

    A panel has all vectors that a kernel holds, but for a rest that would leave a panel of one: 4 are 2 and 2. A vector
    that is not whole is a panel of its own. Where `backwards` holds, the last panel comes first.
    """
    most_vectors = tile.vectors
    columns = minus(f, "%n", start)
    whole = f.value(f"sdiv i64 {columns}, {tile.lanes}")
    full, uneven = _widest(f, tile, whole)
    before = times(f, full, most_vectors)
    rest = minus(f, whole, before)
    first = f.value(f"select i1 {uneven}, i64 {max(most_vectors - 1, 1)}, i64 {rest}")
    some = f.value(f"zext i1 {compare(f, 'sgt', rest, 0)} to i64")
    panels_of_whole = plus(f, full, some, f.value(f"zext i1 {uneven} to i64"))
    masked = compare(f, "slt", times(f, whole, tile.lanes), columns)
    count = plus(f, panels_of_whole, f.value(f"zext i1 {masked} to i64"))
    with f.loop(count, hint="panels") as turn:
        number = turn
        if backwards is not None:
            mirrored = minus(f, minus(f, count, 1), turn)
            number = f.value(f"select i1 {backwards}, i64 {mirrored}, i64 {turn}")
        wide, one = compare(f, "slt", number, full), compare(f, "eq", number, full)
        last = compare(f, "sge", number, panels_of_whole)
        at = f.value(f"select i1 {one}, i64 {before}, i64 {plus(f, before, first)}")
        at = f.value(f"select i1 {wide}, i64 {times(f, number, most_vectors)}, i64 {at}")
        at = f.value(f"select i1 {last}, i64 {whole}, i64 {at}")
        vectors = f.value(f"select i1 {one}, i64 {first}, i64 {minus(f, rest, first)}")
        vectors = f.value(f"select i1 {wide}, i64 {most_vectors}, i64 {vectors}")
        vectors = f.value(f"select i1 {last}, i64 1, i64 {vectors}")
        j = plus(f, times(f, at, tile.lanes), start)
        yield j, vectors, minus(f, "%n", j)


def widest_panels(f: LLVMFunction, tile: Tile, columns: str) -> str:
    """Write how many panels of so many columns have all vectors that a kernel holds: the first ones."""
    return _widest(f, tile, f.value(f"sdiv i64 {columns}, {tile.lanes}"))[0]


def _widest(f: LLVMFunction, tile: Tile, whole: str) -> tuple[str, str]:
    """Write how many panels of so many vectors have all that a kernel holds, and whether one gave a vector away."""
    if tile.vectors == 1:
        return whole, "false"
    left_over = f.value(f"srem i64 {whole}, {tile.vectors}")
    uneven = all_of(f, compare(f, "eq", left_over, 1), compare(f, "sgt", whole, 1))
    return minus(f, f.value(f"sdiv i64 {whole}, {tile.vectors}"), f.value(f"zext i1 {uneven} to i64")), uneven


def _at_column(f: LLVMFunction, tile: Tile, j: str, step: str, packed: str | None) -> tuple[str, ...]:
    """Write the kernel's operands up to the strides of C for the panel that begins at column j."""
    bytes_along = times(f, j, tile.size)
    b_offset = bytes_along
    if packed is not None:
        panels_before = times(f, bytes_along, "%k")
        b_offset = f.value(f"select i1 {packed}, i64 {panels_before}, i64 {bytes_along}")
    return ("ptr %a", "i64 %a_row", "i64 %a_step", f"ptr {f.offset('%b', b_offset)}", step,
            f"ptr {f.offset('%c', bytes_along)}", "i64 %c_row")  # fmt: skip


@functools.cache
def _rows(tile: Tile, width: int, scattered: bool = False) -> Definition:
    """Return the function that runs the kernels of one width (0: one masked vector) down the rows."""
    name = f"dy2st.gemm.{tile.dtype}.{'scattered.' if scattered else ''}rows.{width or f'masked{tile.lanes}'}"
    f = LLVMFunction(name, SCATTERED if scattered else KERNEL_PARAMETERS, linkage="internal", also="noinline nounwind")
    few_rows = tile.few_rows if width == tile.vectors else 1  # narrow products are cheap anyhow
    kernels = {
        rows: micro_kernel(tile, rows, width or 1, masked=width == 0, scattered=scattered)
        for rows in (tile.rows, few_rows, 1)
    }
    with f.loop("%rows", step=tile.rows) as i:
        left = minus(f, "%rows", i)
        a = f.offset("%a", times(f, i, "%a_row"))
        c = f.offset("%c", times(f, i, "%c_row"))
        b_rows = "ptr %b_rows" if scattered else "i64 %b_step"
        operands = (f"ptr {a}", "i64 %a_row", "i64 %a_step", "ptr %b", b_rows, f"ptr {c}", "i64 %c_row",
                    f"i64 {left}", "i64 %columns", "i64 %k", "i1 %accumulate")  # fmt: skip
        one = compare(f, "eq", left, 1)
        many = compare(f, "sgt", left, few_rows)
        few = negation(f, any_of(f, many, one))
        for rows, condition in {1: one, few_rows: few if few_rows > 1 else one, tile.rows: many}.items():
            with f.when(condition):
                f.call("void", f"@{kernels[rows].name}", *operands)
    f.ret()
    return Definition(name, f.text(), tuple(kernels.values()))
