"""`with_gradient` over lanes: its own derivatives, which are Programs, become Programs over lanes."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.batching.batched_value import BatchedValue
from dy2st.batching.batcher import Batcher, pushed, rule
from dy2st.batching.rules import Lanes, again
from dy2st.ir.printer import to_text
from dy2st.ir.program import Operation, Program
from dy2st.ops.control.custom_vjp import is_arithmetic, program_of


@rule("with_gradient")
def with_gradient(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Values and inputs are stacked, so that each lane has derivatives of its own."""
    values, inputs = int(operation.attributes["values"]), int(operation.attributes["inputs"])
    captures = lanes[values + inputs :]
    rest = [*(True for _ in range(values)), *(lane.stacked for lane in captures)]
    pullback = _over_lanes(at, operation.attributes["pullback"], [*(True for _ in range(values)), *rest])
    pushforward = _over_lanes(at, operation.attributes["pushforward"], [*(True for _ in range(inputs)), *rest])
    if not pullback:
        return None
    operands = [*(at.stacked(lane) for lane in lanes[: values + inputs]), *(lane.value for lane in captures)]
    return again(at, operation, operands, pullback=pullback, pushforward=pushforward)


def _over_lanes(at: Batcher, text: str, batched: Sequence[bool]) -> str:
    """Return the text of a Program over lanes; nothing where there is none, or it would be more than arithmetic."""
    if not text:
        return ""
    program = program_of(text)
    if len(batched) != len(program.block.arguments):
        return ""
    inner = pushed(program, batched, at.lanes if isinstance(at.lanes, int) else None)
    inner.b.block.results = [inner.stacked(inner.lane(v)) for v in program.block.results]
    if not all(map(is_arithmetic, inner.b.block.operations)):
        return ""
    return to_text(Program({"main": inner.b.block}), locations=False)
