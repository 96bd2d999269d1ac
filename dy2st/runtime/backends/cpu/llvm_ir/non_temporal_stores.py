"""Results so large that they are written past the caches: there they would take the place of what is read.

A plain store first reads the line that it writes to. One past the caches does not, and leaves operands where they are,
for the next run. That pays where the caches would not hold the result until it is read.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare

LARGE = 1 << 24
"""So many bytes are half of a usual last cache."""
LEAST_VECTOR = 32
"""Narrower stores than that would fill a line too slowly."""


def is_non_temporal(f: LLVMFunction, large: str, address: str, align: int, read: list[str]) -> str:
    """Write whether vectors of `align` bytes are written to `address` past the caches, where it is not what is read."""
    number = f.value(f"ptrtoint ptr {address} to i64")
    whole = compare(f, "eq", f.value(f"and i64 {number}, {align - 1}"), 0)
    return all_of(f, large, whole, *(f.value(f"icmp ne ptr {address}, {other}") for other in read))


def fence(f: LLVMFunction, large: str) -> None:
    """Write that stores past the caches have happened before what follows: they are not ordered by themselves."""
    with f.when(large, "fence"):
        f.do("fence seq_cst")
