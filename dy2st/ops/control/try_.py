"""`try`: run a block; where it raises what the handler is for, run the handler with the values of the point of raise.

Sub-blocks are closed, so a handler cannot see what the body had computed. The `raise` that it belongs to has that as
its last operands, and hands it over: one `try` for each `raise` that the user's handlers may see. What operations raise
by themselves is caught by kind, around that one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.program import Block
from dy2st.ir.types import Type
from dy2st.ops.control.control_flow import RAISABLE, check_arguments, join, outward, visible_symbols
from dy2st.ops.core.base import Op


class Try(Op):
    """Run the first block; where it raises what this catches, the results are those of the second.

    Both take the operands; the second takes the last operands of the `raise` with this `label` in front of them.
    `kinds` are the built-in exceptions that are caught whoever raises them; then nothing is handed over.
    """

    name = "try"
    block_names = ("body", "handler")
    is_try = True
    attributes = ("label", "kinds")
    blocks = 2

    def infer_operation(self, types: Sequence[Type], attributes: dict[str, Any], blocks: Sequence[Block]) -> Any:
        body, handler = blocks
        given = len(handler.arguments) - len(types)
        if attributes["label"] is None and given > 0:
            raise TypeError(f"try: without a label nothing is handed over, but the handler takes {given} values more")
        for kind in attributes["kinds"]:
            if kind not in RAISABLE:
                raise TypeError(f"{kind} is not a built-in exception")
        check_arguments(self.name, types, body)
        check_arguments(self.name, [*(v.type for v in handler.arguments[: max(given, 0)]), *types], handler)
        mine, other = ([v.type for v in block.results] for block in blocks)
        if len(mine) != len(other):
            raise TypeError(f"try: the body has {len(mine)} results, the handler {len(other)}")
        seen = visible_symbols(types)
        return tuple(outward(join(a, b), seen) for a, b in zip(mine, other, strict=True))


def handed_over(error: BaseException, label: int | None, kinds: tuple[str, ...], count: int) -> Sequence[Any] | None:
    """Return the `count` values that the handler of a `try` takes over from `error`, None where it is not caught."""
    raised = getattr(error, "raised", None)
    if raised is not None and label is not None and raised[0] == label:
        return raised[1][len(raised[1]) - count :]
    return () if any(isinstance(error, RAISABLE[kind]) for kind in kinds) else None
