"""Which operations of a block share a loop nest, and in which order the block's steps run."""

from __future__ import annotations

from dataclasses import dataclass

from dy2st.ir.program import Block, Operation, Value


@dataclass
class Group:
    """Operations that run as one loop nest."""

    members: list[Operation]
    operands: list[Value]
    results: list[Value]


Step = Operation | Group


def schedule(block: Block) -> list[Step]:
    """Return the steps of a block in the order in which they run."""
    return list(block.operations)
