"""Make a block anew, operation by operation, with others in the place of some."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value

Now = Callable[[Value], Value]
"""What stands in the place of a value by now."""


def rebuild(block: Block, instead: Callable[[Builder, Operation, Now], Sequence[Value] | None]) -> None:
    """Ask for each operation, whose operands are up to date, what takes its place.

    `instead` emits it at the operation's line and returns the values in the place of the results; none where the
    operation is left out because nobody reads it any more; None where it stays.
    """
    values: dict[Value, Value] = {}

    def now(value: Value) -> Value:
        return values.get(value, value)

    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        operation.operands = [now(v) for v in operation.operands]
        b.location = operation.location
        made = instead(b, operation, now)
        if made is None:
            b.adopt(operation)
        elif made:
            values.update(zip(operation.results, made, strict=True))
    block.results = [now(v) for v in block.results]
