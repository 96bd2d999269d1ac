"""What of a block's order is seen outside: what may raise, and what happens only where nothing has raised before it."""

from __future__ import annotations

from dy2st.ir.program import Operation


def can_raise(operation: Operation) -> bool:
    """Return whether an operation may raise on operands of its types."""
    return operation.op.can_raise([v.type for v in operation.operands], operation.attributes)


def is_observed(operation: Operation) -> bool:
    """Return whether the operation, or one inside it, may raise or is seen outside."""
    if operation.op.effect or operation.op.is_call or can_raise(operation):
        return True
    return any(is_observed(inner) for block in operation.blocks for inner in block.operations)
