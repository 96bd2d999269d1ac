"""How a loop nest is split between threads, and what it is taken to cost.

"rows"      parts are ranges of one axis outside of the rows, the longest. Reductions over rows are added up by blocks
            of that axis, whose totals are added up in order, so that nobody sees by whom
"sweeps"    there is one row: each sweep is split into ranges of it, one sweep after the other; so are its sums, by
            blocks
"whole"     it is not: too small
"blocks"    blocks of its sums are run by who has put it together with others (fused_group_calls.py)
"""

from __future__ import annotations

import math
from typing import Literal

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import Integer, all_of, compare, least, minus, most, plus, times
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout
from dy2st.runtime.backends.cpu.thread_pool.job_scheduling import LEAST_COST
from dy2st.runtime.backends.cpu.vector_ops.elementwise import is_dear

Way = Literal["rows", "sweeps", "whole", "blocks"]

ROW_COST = 5_000
"""Picoseconds that a row takes beyond those of its elements."""
_DEAR_COST, _CHEAP_COST, _MEMORY_COST = 8_000, 300, 1_000
"""Picoseconds of one operation on a vector, and of reading or writing one."""
RANGE_UNIT = 1024
"""Elements that are not told apart where a row is split."""
_BLOCK = 4096
MOST_BLOCKS = 64
"""How many blocks a sum has at most."""
MOST_COLUMN_BLOCKS, LONGEST_COLUMNS = 16, 1 << 14
"""The same for reductions over rows, each block with memory for a row; longer rows than that are not worth it."""


def element_cost(made: NestLayout, lanes: int) -> int:
    """Return how many picoseconds an element of a row takes, roughly."""
    cost = 0
    for operation in made.group.members:
        source = operation.operands[0] if operation.op.monoid else operation.results[0]
        if not made.is_row(source):
            cost += operation.op.picoseconds or (_DEAR_COST if is_dear(operation.op) else _CHEAP_COST)
    passing = [v for v in (*made.read, *made.group.results) if not made.is_row(v)]
    return max(1, (cost + _MEMORY_COST * (len(passing) + 2 * len(made.kept))) // lanes)


def way(made: NestLayout, cost: int) -> Way:
    """Return how a nest is split whose elements take `cost` picoseconds."""
    many = LEAST_COST  # where only the run knows
    rows = math.prod(e if isinstance(e, int) else many for e in made.group.space[: made.outer])
    length = math.prod(e if isinstance(e, int) else many for e in made.group.space[made.outer :])
    if rows * (ROW_COST + length * cost) < LEAST_COST:
        return "whole"
    if not made.outer:
        return "sweeps"
    return "rows"


def longest(f: LLVMFunction, extents: list[str]) -> tuple[str, str]:
    """Write which axis is the longest one, and its extent."""
    axis, length = "0", extents[0]
    for other, extent in enumerate(extents[1:], 1):
        longer = compare(f, "sgt", extent, length)
        axis = f.value(f"select i1 {longer}, i64 {other}, i64 {axis}")
        length = f.value(f"select i1 {longer}, i64 {extent}, i64 {length}")
    return axis, length


def units(f: LLVMFunction, length: Integer, unit: int) -> str:
    """Write how many units of a power of two elements a row has, the last one cut off."""
    return f.value(f"lshr i64 {plus(f, length, unit - 1)}, {unit.bit_length() - 1}")


def bounds(f: LLVMFunction, length: str, unit: Integer, first: str, last: str) -> tuple[str, str]:
    """Write where the elements of a range of units begin and end."""
    return times(f, first, unit), least(f, times(f, last, unit), length)


def blocks(f: LLVMFunction, length: str) -> tuple[str, str]:
    """Write how many blocks the sums of a row have, and of how many elements: by its length alone."""
    size = f.value(f"and i64 {plus(f, f.value(f'lshr i64 {length}, 6'), _BLOCK)}, {-_BLOCK}")
    count = f.value(f"udiv i64 {plus(f, length, minus(f, size, 1))}, {size}")
    return most(f, count, 1), size


def known_blocks(length: int) -> tuple[int, int]:
    """Return the same for a length that is known."""
    size = ((length >> 6) + _BLOCK) & -_BLOCK
    return max(-(-length // size), 1), size


def column_blocks(f: LLVMFunction, count: str, cost: str, length: str) -> tuple[str, str, str]:
    """Write whether reductions over `count` rows are done by blocks, how many there are, and of how many rows."""
    large = f.value(f"icmp uge i64 {times(f, count, cost)}, {LEAST_COST}")
    several = all_of(f, large, compare(f, "sle", length, LONGEST_COLUMNS), compare(f, "sgt", count, 1))
    number = f.value(f"select i1 {several}, i64 {least(f, count, MOST_COLUMN_BLOCKS)}, i64 1")
    return several, number, f.value(f"udiv i64 {plus(f, count, minus(f, number, 1))}, {number}")
