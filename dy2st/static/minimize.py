"""`Optimizer.minimize` in static mode: the gradients of a loss and the updates become part of the Program.

A parameter that only an untaken branch used has no gradient in that run and is left alone, as in eager mode: its update
stands under `cond`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dy2st.autodiff.reverse import set_flag
from dy2st.ir.context import current, replaced
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.control_flow.conditional import if_exp
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.static.operator import Operator

if TYPE_CHECKING:
    from dy2st.static.recorder import ProgramRecorder


def minimize(
    recorder: ProgramRecorder, optimizer: Any, loss: Tensor, startup_program: Any, parameters: Any, no_grad_set: Any
) -> tuple[list[Operator], list[tuple[Tensor, Tensor]]]:
    """Append gradients and updates; return the new operations and the pairs (parameter, gradient)."""
    if parameters is None and optimizer._parameter_list:
        parameters = optimizer._parameter_list
    static = current().static
    if startup_program is not None:
        static = (static[0], startup_program)
    before = len(recorder.builder.block.operations)
    with replaced(static=static):
        pairs = recorder.append_backward(loss, parameters, no_grad_set)
        if not pairs:
            raise ValueError("minimize: the loss depends on no trainable parameter of this Program")
        optimizer.apply_gradients(pairs)
    return [Operator(o) for o in recorder.builder.block.operations[before:]], pairs


def update(recorder: ProgramRecorder, optimizer: Any, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
    """Append the update of one parameter, under `cond` where its gradient may not be there."""
    recorder.trained.add(id(p))
    ct = recorder.optional_grads.get(id(p))
    known = set(recorder.states)
    if ct is None:
        optimizer.update_in_trace(p, g, group)
    else:
        if_exp(recorder, Scalar(set_flag(recorder.builder, ct)), lambda: optimizer.update_in_trace(p, g, group), _skip)
    recorder.trained.update(id(s.tensor) for name, s in recorder.states.items() if name not in known)


def _skip() -> None:
    """Leave the parameter alone."""
