"""The push-forward of one eager op: tangents of operands in, tangents of results out, as a small Program.

It is derived once per kind of call, as the pull-back is (`op_vjp.py`), and takes of a node what that takes:
operands, results, extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.forward import Tangents, push_forward
from dy2st.errors import AutodiffError
from dy2st.ir.types import is_differentiable
from dy2st.ops.core.base import Op
from dy2st.records import record
from dy2st.runtime.eager.tape.op_derivative import OpDerivation, Place, attribute_key, shape_pattern
from dy2st.runtime.executor.executable import Compiled


@record(frozen=True)
class OpPushforward:
    """`compiled` takes the arguments that `uses` names, then tangents; gives those of results `found`."""

    compiled: Compiled
    uses: tuple[Place, ...]
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
    call = OpDerivation(op, attributes, pattern)
    call.take_result_extents()
    ahead, arguments, outs = call.builder, call.arguments, call.outs
    tangents: Tangents = {arguments[i]: ahead.argument(arguments[i].type) for i in given}
    entering = [tangents[arguments[i]] for i in given]
    push_forward(ahead, call.block, None, tangents)
    found = tuple(i for i, v in enumerate(outs) if v in tangents and is_differentiable(v.type))
    if ahead.residuals:
        raise AutodiffError(f"the derivative of '{op.name}' needs a value that was not kept")
    ahead.block.results = [ahead.use(tangents[outs[i]]) for i in found]
    return OpPushforward(*call.close(entering), found)
