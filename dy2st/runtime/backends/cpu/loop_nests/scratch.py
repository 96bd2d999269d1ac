"""Memory of their own that a split nest takes: for the scratch of each thread, for the sums of each block."""

from __future__ import annotations

from dy2st.ir.program import Value
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import plus
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import element_cost, way
from dy2st.runtime.backends.cpu.loop_nests.schedule import NestLayout, lanes_of


def needs_rooms(made: NestLayout, target: Target) -> bool:
    """Return whether each thread needs scratch memory of its own: then the last parameter says for how many it is."""
    return bool(made.kept) and way(made, element_cost(made, lanes_of(made, target))) == "rows"


def column_rooms(made: NestLayout, target: Target) -> list[Value]:
    """Return the reductions over rows that are done by blocks: for each, the kernel takes memory behind all else."""
    return list(made.group.columns) if way(made, element_cost(made, lanes_of(made, target))) == "rows" else []


def room_length(f: LLVMFunction, length: str) -> str:
    """Write how many elements the scratch rows of two threads are apart."""
    return f.value(f"and i64 {plus(f, length, 63)}, -64")
