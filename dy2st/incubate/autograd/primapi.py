"""`grad` and `forward_grad`: derivatives of tensors at tensors, any number of times, in eager and in static mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autograd.rules import as_tensors, check_like, pull, tangents_or_zeros
from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor


def enable_prim() -> None:
    """Do what Paddle needs before derivatives of high order in static mode; here they are always there."""
    current().process.prim_enabled = True


def disable_prim() -> None:
    """Undo `enable_prim`."""
    current().process.prim_enabled = False


def prim_enabled() -> bool:
    """Return whether `enable_prim` was called last."""
    return current().process.prim_enabled


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None) -> Any:
    """Return the gradients of the sum of `outputs` at `inputs`; they can be differentiated again.

    Parameters
    ----------
    outputs, inputs
        Tensors (variables in static mode), or sequences of them.
    grad_outputs
        The cotangents to start from, of the outputs' shapes; ones where None.

    Returns
    -------
    A gradient for one tensor, a list for a sequence; None for an input on which no output depends.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor(2.0, stop_gradient=False)
    >>> first = paddle.incubate.autograd.grad(x * x * x, x)
    >>> float(first), float(paddle.incubate.autograd.grad(first, x))
    (12.0, 12.0)
    """
    outs, ins = as_tensors(outputs, "grad: outputs"), as_tensors(inputs, "grad: inputs")
    found = pull(outs, ins, _given(grad_outputs, outs, "grad: grad_outputs"))
    return found[0] if isinstance(inputs, Tensor) else found


def forward_grad(outputs: Any, inputs: Any, grad_inputs: Any = None) -> Any:
    """Return the tangents of `outputs` when `inputs` have the tangents `grad_inputs`: forward mode.

    Parameters
    ----------
    outputs, inputs
        Tensors (variables in static mode), or sequences of them.
    grad_inputs
        Tangents of the inputs' shapes; ones where None.

    Returns
    -------
    A tangent for one tensor, a list for a sequence; zeros for an output that depends on no input.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.incubate.autograd.forward_grad(x * x, x, paddle.to_tensor([1.0, 10.0])).tolist()
    [2.0, 40.0]
    """
    outs, ins = as_tensors(outputs, "forward_grad: outputs"), as_tensors(inputs, "forward_grad: inputs")
    found = tangents_or_zeros(outs, ins, _given(grad_inputs, ins, "forward_grad: grad_inputs"))
    return found[0] if isinstance(outputs, Tensor) else found


def _given(given: Any, likes: Sequence[Tensor], what: str) -> list[Tensor | None]:
    """Return seeds that fit tensors, None where none is given."""
    listed: list[Any] = [None] * len(likes) if given is None else [given] if isinstance(given, Tensor) else list(given)
    if len(listed) != len(likes):
        raise ValueError(f"{what} has {len(listed)} tensors, but {len(likes)} are needed")
    for seed, like in zip(listed, likes, strict=True):
        if seed is not None:
            check_like(seed, like, what)
    return listed
