"""Weights made anew at each call, and functions with a gradient of their own, in Programs that are built by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.autograd.py_layer import PyLayer
from dy2st.functions.linalg import linalg
from dy2st.nn.initializer import Normal
from dy2st.nn.param_attr import ParamAttr
from dy2st.nn.reparametrize import _axis, _improved, _matrix
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.gradients import recorder_now
from dy2st.static.nn.layers import _floating, _known, _Owner


def spectral_norm(
    weight: Tensor, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Tensor:  # fmt: skip
    """Return a weight divided by an estimate of its largest singular value.

    The weight is read as a matrix with a row for each index along `dim`. The estimate takes `power_iters` iterations
    from two vectors of the startup program, which get no gradient. Raises ValueError for an unknown extent.
    """
    owner = _Owner("spectral_norm", name, _floating(weight, "spectral_norm"))
    matrix = _matrix(weight, _axis(weight, dim))
    rows, columns = _known(matrix.shape, "spectral_norm", "the extents of the weight")
    u, v = (owner.parameter([n], ParamAttr(initializer=Normal(0.0, 1.0), trainable=False)) for n in (rows, columns))
    u, v = _improved(matrix, u, v, power_iters, eps)
    return weight / linalg.dot(u, linalg.mv(matrix, v))


def static_pylayer(
    forward_fn: Callable[..., Any], inputs: Sequence[Tensor], backward_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return forward_fn(*inputs), whose gradients are what `backward_fn` makes of those of the results.

    `backward_fn` takes a gradient for each result and returns one for each input; without it no gradient flows.
    Raises TypeError for inputs that are no list of variables, RuntimeError outside of static mode.
    """
    recorder_now("paddle.static.nn.static_pylayer")
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(t, Tensor) for t in inputs):
        raise TypeError("static_pylayer: inputs must be a list of variables")

    class Own(PyLayer):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            return forward_fn(*given)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return None if backward_fn is None else backward_fn(*gradients)

    return Own.apply(*(inputs if backward_fn is not None else [t.detach() for t in inputs]))
