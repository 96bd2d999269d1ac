"""Maps that are linear in each of their inputs."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import op, tensor, together
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_MATMUL, _ADD = op("matmul"), op("add")


@composite
def linear(x: Any, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """Return x @ weight + bias; `weight` is [in_features, out_features], x is [..., in_features].

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([[1.0, 2.0]])
    >>> paddle.nn.functional.linear(x, paddle.to_tensor([[1.0], [10.0]])).tolist()
    [[21.0]]
    """
    x = tensor(x, "linear")
    if x.ndim == 0:
        raise ValueError("linear: the input must have at least one axis")
    _check(x, weight)
    if x.dtype is not weight.dtype:
        x, weight = together((x, weight), "linear")
    flat = x if x.ndim == 2 else x.reshape([-1, weight.shape[0]])
    out = apply(_MATMUL, flat, weight, transpose_x=False, transpose_y=False)
    if x.ndim != 2:
        out = out.reshape([*x.shape[:-1], weight.shape[1]])
    if bias is None:
        return out
    return apply(_ADD, out, bias) if bias.dtype is out.dtype else out + bias


def _check(x: Tensor, weight: Tensor) -> None:
    given, wanted = x.shape[-1], weight.shape[0]
    if isinstance(given, int) and isinstance(wanted, int) and given != wanted:
        raise ValueError(
            f"linear: the last axis of the input (shape {x.shape}) has {given} elements, "
            f"the weight (shape {weight.shape}) takes {wanted}"
        )


@composite
def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """Return out[b, k] = x1[b] @ weight[k] @ x2[b] + bias[k]; `weight` is [out, in1, in2], `bias` [1, out]."""
    x1, x2, weight = together((x1, x2, weight), "bilinear")
    left = x1.unsqueeze(0).matmul(weight)
    out = (left * x2.unsqueeze(0)).sum(-1).transpose([1, 0])
    return out if bias is None else out + bias
