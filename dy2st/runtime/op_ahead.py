"""One eager op, and a builder for what goes forward beside it: its push-forward, its Taylor coefficients.

What is built takes of a node what a pull-back takes (`op_pullback.py`): operands, results, extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.ir.program import Program, Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.base import Op
from dy2st.runtime.compiled import Compiled
from dy2st.runtime.op_pullback import drop_dead, fresh_builder, operand_type, take_extents
from dy2st.shapes import Dim

Place = tuple[str, int, int]
"""What a node has: ("operand", which, 0), ("result", which, 0), ("result extent", result, axis), or an extent."""


class Ahead:
    """The block of a call with operands of this pattern, and the builder of what goes forward beside it."""

    def __init__(self, op: Op, attributes: dict[str, Any], pattern: tuple[Any, ...]):
        b = fresh_builder(pattern)
        self.block = b.block
        self.arguments = [b.argument(operand_type(one)) for one in pattern]
        out = b.apply(op, self.arguments, attributes)
        self.outs: list[Value] = list(out) if isinstance(out, list) else [out]
        self.builder = BackwardBuilder(b, None, {})
        self._places: dict[Value, Place] = {}
        for kind, values in (("operand", self.arguments), ("result", self.outs)):
            for i, value in enumerate(values):
                here = self.builder.argument(value.type)
                self.builder.rename(value, here)
                self._places[here] = (kind, i, 0)
        take_extents(self.builder, self.arguments, b.block.operations, self._places)
        _take_result_extents(self.builder, self.arguments, self.outs, self._places)

    def close(self, entering: Sequence[Value]) -> tuple[Compiled, tuple[Place, ...]]:
        """Return the Program of what was built, and which parts of a node it takes before what is `entering`."""
        block = self.builder.block
        used = drop_dead(block)
        kept = [a for a in self._places if a in used]
        block.arguments[:] = [*kept, *entering]
        return Compiled(Program({"main": block})), tuple(self._places[a] for a in kept)


def _take_result_extents(
    ahead: BackwardBuilder, arguments: Sequence[Value], outs: Sequence[Value], places: dict[Value, tuple[str, int, int]]
) -> None:
    """Let the extents that only the run tells of results come as numbers."""
    seen = {e for a in arguments if isinstance(a.type, TensorType) for e in a.type.shape}
    for i, out in enumerate(outs):
        for axis, extent in enumerate(out.type.shape if isinstance(out.type, TensorType) else ()):
            if isinstance(extent, Dim) and extent.is_symbol and extent not in seen:
                seen.add(extent)
                here = ahead.block.add_argument(ScalarType("int", extent))
                ahead.provide(extent, here)
                places[here] = ("result extent", i, axis)
