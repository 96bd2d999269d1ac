"""`append_backward` and `gradients`, as users call them."""

from __future__ import annotations

from typing import Any

from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.gradients import Pairs, recorder_now
from dy2st.static.gradients import append_backward as append_rule
from dy2st.static.gradients import gradients as gradients_rule


def append_backward(
    loss: Tensor, parameter_list: Any = None, no_grad_set: Any = None, callbacks: Any = None,
    checkpoints: Any = None, distop_context: Any = None,
) -> Pairs:  # fmt: skip
    """Append the gradients of a loss at parameters to the Program.

    Parameters
    ----------
    loss
        A variable of one element.
    parameter_list
        Parameters or their names; default: every trainable one of the Program.
    no_grad_set
        Variables (or names) through which no gradient flows.

    Returns
    -------
    Pairs (parameter, gradient), the gradient named `<parameter>@GRAD`; parameters that the loss does not depend on have
    none.
    """
    if callbacks is not None:
        raise ValueError("append_backward: callbacks are not supported; look at the pairs that it returns")
    return append_rule(recorder_now("append_backward"), loss, parameter_list, no_grad_set)


def gradients(targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None) -> list[Tensor | None]:
    """Append the gradients of the sum of `targets` at `inputs`; return them, None where targets do not depend on one.

    `target_gradients` are the cotangents to start from, ones where None. Gradients can be differentiated again.
    """
    return gradients_rule(recorder_now("gradients"), targets, inputs, target_gradients, no_grad_set)
