"""How a loop nest is split between threads, and what it is taken to cost.

"rows"      parts are ranges of one axis outside of the rows, the longest
"columns"   parts are ranges of the row, each for all rows: for reductions over the first axes
"sweeps"    there is one row: each sweep is split into ranges of it, one after the other; its sums are added up by
            blocks, whose totals are added up in order, so that nobody sees by whom
"whole"     it is not: too small, or reductions over rows and columns both
"""

from __future__ import annotations

import math
from typing import Literal

from dy2st.runtime.cpu.elementwise import DEAR
from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.integers import Integer, compare, least, minus, most, plus, times
from dy2st.runtime.cpu.layout import Layout
from dy2st.runtime.cpu.reductions import REDUCTIONS
from dy2st.runtime.cpu.threads.jobs import LEAST_COST

Way = Literal["rows", "sweeps", "whole"]

ROW_COST = 5_000
"""Picoseconds that a row takes beyond those of its elements."""
_DEAR_COST, _CHEAP_COST, _MEMORY_COST = 8_000, 300, 1_000
"""Picoseconds of one operation on a vector, and of reading or writing one."""
RANGE_UNIT = 1024
"""Elements that are not told apart where a row is split."""
_BLOCK = 4096
MOST_BLOCKS = 64
"""How many blocks a sum has at most."""


def element_cost(made: Layout, lanes: int) -> int:
    """Return how many picoseconds an element of a row takes, roughly."""
    cost = 0
    for operation in made.group.members:
        source = operation.operands[0] if operation.op.name in REDUCTIONS else operation.results[0]
        if not made.is_row(source):
            cost += _DEAR_COST if operation.op.name in DEAR else _CHEAP_COST
    passing = [v for v in (*made.read, *made.group.results) if not made.is_row(v)]
    return max(1, (cost + _MEMORY_COST * (len(passing) + 2 * len(made.kept))) // lanes)


def way(made: Layout, cost: int) -> Way:
    """Return how a nest is split whose elements take `cost` picoseconds."""
    many = LEAST_COST  # where only the run knows
    rows = math.prod(e if isinstance(e, int) else many for e in made.group.space[: made.outer])
    length = math.prod(e if isinstance(e, int) else many for e in made.group.space[made.outer :])
    if rows * (ROW_COST + length * cost) < LEAST_COST:
        return "whole"
    if not made.outer:
        return "sweeps"
    return "whole" if made.group.columns else "rows"


def longest(f: Function, extents: list[str]) -> tuple[str, str]:
    """Write which axis is the longest one, and its extent."""
    axis, length = "0", extents[0]
    for other, extent in enumerate(extents[1:], 1):
        longer = compare(f, "sgt", extent, length)
        axis = f.value(f"select i1 {longer}, i64 {other}, i64 {axis}")
        length = f.value(f"select i1 {longer}, i64 {extent}, i64 {length}")
    return axis, length


def units(f: Function, length: Integer, unit: int) -> str:
    """Write how many units of a power of two elements a row has, the last one cut off."""
    return f.value(f"lshr i64 {plus(f, length, unit - 1)}, {unit.bit_length() - 1}")


def bounds(f: Function, length: str, unit: Integer, first: str, last: str) -> tuple[str, str]:
    """Write where the elements of a range of units begin and end."""
    return times(f, first, unit), least(f, times(f, last, unit), length)


def blocks(f: Function, length: str) -> tuple[str, str]:
    """Write how many blocks the sums of a row have, and of how many elements: by its length alone."""
    size = f.value(f"and i64 {plus(f, f.value(f'lshr i64 {length}, 6'), _BLOCK)}, {-_BLOCK}")
    count = f.value(f"udiv i64 {plus(f, length, minus(f, size, 1))}, {size}")
    return most(f, count, 1), size
