"""Softmax, its logarithm, and samples from it."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, one_axis, op
from dy2st.functions.inplace import in_place_form
from dy2st.functions.math import math
from dy2st.functions.math.random import uniform
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_SOFTMAX, _LOG_SOFTMAX = op("softmax"), op("log_softmax")


def softmax(x: Any, axis: int = -1, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return e^x / sum(e^x) along the axis; x is cast to `dtype` first where one is given.

    >>> import dy2st as paddle
    >>> paddle.nn.functional.softmax(paddle.to_tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    x = _given(x, dtype, "softmax")
    return apply(_SOFTMAX, x, axis=one_axis(axis, x.ndim, "softmax"))


softmax_ = in_place_form(softmax, "softmax")


def log_softmax(x: Any, axis: int = -1, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the logarithm of softmax along the axis."""
    x = _given(x, dtype, "log_softmax")
    return apply(_LOG_SOFTMAX, x, axis=one_axis(axis, x.ndim, "log_softmax"))


def gumbel_softmax(
    x: Any, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Tensor:
    """Return a soft sample of the categories whose logits are x (Jang et al., 2017).

    With `hard` the sample is one-hot, and gradients are those of the soft one.
    """
    if temperature <= 0:
        raise ValueError(f"gumbel_softmax: the temperature must be positive, not {temperature}")
    x = floating(x, "gumbel_softmax")
    noise = -math.log(-math.log(uniform(x.shape, x.dtype, min=1e-20 if x.dtype is dtypes.float64 else 1e-10, max=1.0)))
    soft = softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    axis = one_axis(axis, x.ndim, "gumbel_softmax")
    best = cast_to(soft == soft.max(axis, keepdim=True), soft.dtype)
    first = best * cast_to(best.cumsum(axis) == 1, soft.dtype)
    return first - soft.detach() + soft


def _given(x: Any, dtype: Any, name: str) -> Tensor:
    x = floating(x, name)
    return x if dtype is None else cast_to(x, dtypes.dtype(dtype))
