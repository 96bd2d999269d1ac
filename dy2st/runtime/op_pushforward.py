"""The push-forward of one eager op: tangents of operands in, tangents of results out, as a small Program.

It is derived once per kind of call, as the pull-back is (`op_pullback.py`), and takes of a node what that takes:
operands, results, extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dy2st.autodiff.forward import Tangents, push_forward
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.errors import AutodiffError
from dy2st.ir.program import Program, Value
from dy2st.ir.types import ScalarType, TensorType, is_differentiable
from dy2st.ops.base import Op
from dy2st.runtime.compiled import Compiled
from dy2st.runtime.op_pullback import attribute_key, drop_dead, fresh_builder, operand_type, shape_pattern, take_extents
from dy2st.shapes import Dim


@dataclass(frozen=True)
class OpPushforward:
    """`compiled` takes the arguments that `uses` names, then tangents; gives those of results `found`."""

    compiled: Compiled
    uses: tuple[tuple[str, int, int], ...]
    """As of a pull-back, and ("result extent", result, axis)."""
    found: tuple[int, ...]


_CACHE: dict[Any, OpPushforward] = {}


def op_pushforward(
    op: Op, attributes: dict[str, Any], operands: Sequence[Any], given: tuple[int, ...]
) -> OpPushforward:
    """Return the push-forward of a call on these operands, of which `given` have a tangent."""
    pattern = shape_pattern(operands)
    key = (op.name, attribute_key(attributes), pattern, given)
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = _derive(op, attributes, pattern, given)
    return found


def _derive(op: Op, attributes: dict[str, Any], pattern: tuple[Any, ...], given: tuple[int, ...]) -> OpPushforward:
    b = fresh_builder(pattern)
    arguments = [b.argument(operand_type(one)) for one in pattern]
    out = b.apply(op, arguments, attributes)
    outs: list[Value] = list(out) if isinstance(out, list) else [out]
    ahead = BackwardBuilder(b, None, {})
    places: dict[Value, tuple[str, int, int]] = {}
    for kind, values in (("operand", arguments), ("result", outs)):
        for i, value in enumerate(values):
            here = ahead.argument(value.type)
            ahead.rename(value, here)
            places[here] = (kind, i, 0)
    take_extents(ahead, arguments, b.block.operations, places)
    take_result_extents(ahead, arguments, outs, places)
    tangents: Tangents = {arguments[i]: ahead.argument(arguments[i].type) for i in given}
    entering = [tangents[arguments[i]] for i in given]
    push_forward(ahead, b.block, None, tangents)
    found = tuple(i for i, v in enumerate(outs) if v in tangents and is_differentiable(v.type))
    if ahead.residuals:
        raise AutodiffError(f"the derivative of '{op.name}' needs a value that was not kept")
    ahead.block.results = [ahead.use(tangents[outs[i]]) for i in found]
    used = drop_dead(ahead.block)
    kept = [a for a in places if a in used]
    ahead.block.arguments[:] = [*kept, *entering]
    return OpPushforward(Compiled(Program({"main": ahead.block})), tuple(places[a] for a in kept), found)


def take_result_extents(
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
