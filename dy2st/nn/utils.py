"""What is done to the parameters of a model as a whole: clipping gradients, parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dy2st.functions.math import arithmetic, math, reduction
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.manipulation import reshape
from dy2st.ir.context import replaced
from dy2st.missing import missing_in
from dy2st.nn.reparametrize import remove_weight_norm, spectral_norm, weight_norm
from dy2st.runtime.eager.device import namespace
from dy2st.runtime.eager.tensor import Tensor


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale the gradients down together where their norm is above `max_norm`; return the norm.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([3.0, 4.0], stop_gradient=False)
    >>> (x * x / 2).sum().backward()
    >>> float(paddle.nn.utils.clip_grad_norm_(x, 1.0)), x.grad.norm().item() < 1
    (5.0, True)
    """
    listed = _listed(parameters)
    with replaced(grad=False):
        gradients = [p.grad for p in listed if p.grad is not None]
        if not gradients:
            return Tensor(namespace().zeros((), np.float32))
        if norm_type == float("inf"):
            norm = reduction.max(concat([math.abs(g).max().reshape([1]) for g in gradients]))
        else:
            total = arithmetic.add_n([(math.abs(g) ** norm_type).sum() for g in gradients])
            norm = total ** (1.0 / norm_type)
        if error_if_nonfinite and not np.isfinite(norm.numpy()).all():
            raise RuntimeError(f"clip_grad_norm_: the norm of the gradients is {norm.item()}")
        factor = math.minimum(max_norm / (norm + 1e-6), 1.0)
        for p in listed:
            if p.grad is not None:
                p.grad = p.grad * factor.astype(p.grad.dtype)
    return norm


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Keep each element of the gradients between -clip_value and clip_value."""
    with replaced(grad=False):
        for p in _listed(parameters):
            if p.grad is not None:
                p.grad = math.clip(p.grad, -float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """Return the elements of all parameters in one vector."""
    return concat([reshape(p, [-1]) for p in _listed(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Write the parts of a vector into parameters, in order."""
    listed, at = _listed(parameters), 0
    total = sum(p.size for p in listed)
    if vec.size != total:
        raise ValueError(f"vector_to_parameters: the vector has {vec.size} elements, the parameters {total}")
    with replaced(grad=False):
        for p in listed:
            p.set_value(reshape(vec[at : at + p.size], p.shape))
            at += p.size


def _listed(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


__getattr__ = missing_in(__name__)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
