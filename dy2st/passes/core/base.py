"""What a pass is, and how passes are run one after the other.

A pass takes a valid Program, changes it in place and leaves a valid Program that computes the same: the same values,
the same errors, the same effects in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from dy2st.errors import InvalidProgram
from dy2st.ir.program import Block, Program
from dy2st.ir.verifier import verify as verify_program


class Pass(ABC):
    """One transformation of Programs."""

    name: ClassVar[str]

    @abstractmethod
    def apply(self, program: Program) -> bool:
        """Change the Program in place; return whether anything changed."""


def each_block(program: Program, change: Callable[[Block], bool]) -> bool:
    """Change each block of a Program, those inside of others first; return whether anything changed."""
    blocks = [block for function in program.functions.values() for block in innermost_first(function)]
    return sum(change(block) for block in blocks) > 0


def run_pipeline(program: Program, passes: Sequence[Pass], verify: bool = False) -> bool:
    """Apply passes in order; return whether anything changed.

    With `verify`, check the Program after each pass that changed it, and after the last one.
    """
    changed = False
    for one in passes:
        did = one.apply(program)
        changed |= did
        if did:
            program.made_as = None
        if verify and (did or one is passes[-1]):
            _verified(program, one)
    return changed


def _verified(program: Program, after: Pass) -> None:
    try:
        verify_program(program)
    except InvalidProgram as error:
        raise InvalidProgram(f"the pass {after.name!r} broke a rule of the IR: {error}") from error


def innermost_first(block: Block) -> Iterator[Block]:
    """Yield the blocks inside `block`, those inside of them first, then `block`."""
    for operation in list(block.operations):
        for inner in operation.blocks:
            yield from innermost_first(inner)
    yield block
