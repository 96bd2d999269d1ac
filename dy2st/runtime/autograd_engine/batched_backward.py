"""The walk back over the tape with many cotangents at once: one pass for all rows of a Jacobian.

Every cotangent has the lanes as its first axis; what nodes kept has not. The VJPs are those of a plain walk, over
lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.context import current
from dy2st.runtime.autograd_engine.backward import Walk
from dy2st.runtime.eager.tape.node import Node, ProgramCall
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.tracer.control_flow import vmapped_call


class NeedsRows(Exception):
    """A node on the way takes one cotangent at a time: a PyLayer, or a tensor with hooks."""


def pull_lanes(out: Tensor, ins: Sequence[Tensor], seeds: Tensor) -> list[Tensor | None]:
    """Return the gradients at `ins` for each of the cotangents `seeds` [lanes, *out.shape], lanes first.

    They can be differentiated again. Raises NeedsRows where one cotangent has to be pulled back after the other.
    """
    trace = current().trace
    if trace is None:
        return LaneWalk(seeds.shape[0]).gradients([out], list(ins), [seeds], [])
    used: list[bool] = []

    def pulled(cts: list[Tensor]) -> list[Tensor]:
        found = trace.grad([out], ins, cts, ())
        used[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    rest = iter(vmapped_call.over_lanes(trace, pulled, [seeds]))
    return [next(rest) if one else None for one in used]


class LaneWalk(Walk):
    """A walk whose cotangents all have the lanes as their first axis; it is recorded."""

    def __init__(self, lanes: int):
        super().__init__(graph=True, keep=True)
        self.lanes = lanes
        self._moving = 0

    def cotangent(self, out: Tensor, seed: Any) -> Any:
        return seed

    def hooked(self, ct: Any, hooks: dict[int, Any]) -> Any:
        raise NeedsRows

    def pull(self, node: Node, cts: list[Any]) -> list[Any]:
        if not isinstance(node.source, (tuple, ProgramCall)) and node.source is not None:
            raise NeedsRows
        self._moving = sum(ct is not None for ct in cts)
        return super().pull(node, cts)

    def collect(
        self, compiled: Compiled, arguments: list[Any], found: Sequence[int], kinds: Sequence[Any], xp: Any = None
    ) -> Any:
        shared = len(arguments) - self._moving
        batched = (*(False for _ in range(shared)), *(True for _ in range(self._moving)))
        return super().collect(compiled.over_lanes(batched), [self.lanes, *arguments], found, kinds, xp)
