"""Whether a tensor needs a gradient whichever way a run takes.

A trace gives what a branch or an iteration leaves one `stop_gradient`: False where it is False on any way. That is
right for derivatives; code that reads it would see it on the ways on which eager mode has True.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.constant import Detach
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.trace import Trace


def refuse_unsettled(trace: Trace, t: Any) -> None:
    """Raise StructureError where it is known only at run time whether a tensor needs a gradient."""
    if not isinstance(t, Tensor) or t.stop_gradient or not isinstance(t.payload, Value):
        return
    if not _surely_needs(trace, trace.value_of(t)):
        raise error_here(
            StructureError,
            "stop_gradient is read of a tensor that needs a gradient only on some ways through a branch or loop",
            "Set it before: `x = x.detach()`, `x.stop_gradient = False`.",
        )


def _surely_needs(trace: Trace, value: Value) -> bool:
    """Return whether a value is computed of one that enters the Program and needs a gradient."""
    seen, left = {value}, [value]
    while left:
        value = left.pop()
        made = value.operation
        if made is not None and (made.blocks or isinstance(made.op, Detach)):
            continue  # one branch of several, what the last iteration left, or no history
        if made is None:
            outer = _outside(trace.builder, value)
            if outer is None and value.block is trace.root.block and value in trace.needs:
                return True
            operands = [] if outer is None else [outer]
        else:
            operands = [v for v in made.operands if isinstance(v.type, TensorType) and v.type.dtype.is_floating]
        left += [v for v in operands if v not in seen]
        seen.update(operands)
    return False


def _outside(builder: Builder | None, value: Value) -> Value | None:
    """Return what an argument of a block is around it; None for what a loop carries."""
    while builder is not None:
        if builder.block is value.block:
            return next((outer for outer, argument in builder.captures.items() if argument is value), None)
        builder = builder.parent
    return None
