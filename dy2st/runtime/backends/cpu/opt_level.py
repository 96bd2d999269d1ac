"""What native code may be made by the baseline tier, at LLVM's level 0: where that does not make a call take much
longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dy2st.ir.program import Block, Program
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers
from dy2st.runtime.interpreter.cost_model import multiplications

Haste = Literal["none", "outer", "all"]
"""What is made at level 0 of the library's kernels: nothing, all but their inner loops, everything."""
_MUCH = 2**20
"""Multiplications of a product in a loop that are worth inner loops of level 1: those of level 0 take five times as
long."""
_MUCH_IN_ALL = 2**28
"""Multiplications of all products together that are worth them where each is made once a run: 40 ms of one CPU more."""


def has_loops(program: Program) -> bool:
    """Return whether a call runs some operations more than once."""
    return any(operation.op.is_loop or operation.op.is_call for operation in program.walk())


def has_register_loops(program: Program) -> bool:
    """Return whether there is a loop whose iterations need no memory: at level 0 all of its registers would be in
    memory.
    """
    loops = (operation for operation in program.walk() if operation.op.is_loop and operation.blocks)
    return any(all(map(_is_in_registers, loop.blocks)) for loop in loops)


def _is_in_registers(block: Block) -> bool:
    values = (v for operation in block.operations for v in (*operation.operands, *operation.results))
    inner = (b for operation in block.operations for b in operation.blocks)
    return all(in_registers(v.type) for v in values) and all(map(_is_in_registers, inner))


def haste_of_library(program: Program, known: Mapping[str, int]) -> Haste:
    """Return what of the library may be baseline code: not what products that are large run most of the time.

    How large they are is told as far as the extents of inputs tell.
    """
    products = [operation for operation in program.walk() if operation.op.is_contraction]
    counts = [multiplications(operation, known) for operation in products]
    much = sum(counts) > _MUCH_IN_ALL or (has_loops(program) and max(counts, default=0) > _MUCH)
    return "outer" if much else "all"
