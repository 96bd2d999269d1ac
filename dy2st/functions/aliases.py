"""Functions under the names, and with the arguments, that other libraries have for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions import arithmetic, operands
from dy2st.functions.assigning import clone
from dy2st.functions.creation import to_tensor
from dy2st.functions.operands import cast_to, floating, one_axis, op
from dy2st.runtime.dispatch import apply
from dy2st.runtime.tensor import Tensor


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of this dtype: `data` itself where it is one."""
    if not isinstance(data, Tensor):
        return to_tensor(data, dtype)
    return data if dtype is None else cast_to(data, as_dtype(dtype))


def asarray(obj: Any, *, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of this dtype; with `copy` one of its own, and with copy=False ValueError where that has to be.

    >>> import dy2st as paddle
    >>> paddle.asarray([1, 2], dtype="float64").dtype
    paddle.float64
    """
    found = as_tensor(obj, dtype)
    if copy is False and found is not obj:
        raise ValueError("asarray: copy=False, but what is given is no tensor of this dtype")
    return clone(found) if copy and found is obj else found


def true_divide(input: Any, other: Any) -> Tensor:
    """Return input / other, floats also for integers."""
    return arithmetic.divide(input, other)


def broadcast_shapes(*shapes: Sequence[int]) -> list[int]:
    """Return the shape to which shapes broadcast; ValueError, naming them, when they do not."""
    return operands.broadcast_shapes(*shapes)


def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return exp(input) divided by its sum along an axis: without `dim`, the first of 0, 1 or 3 axes, else the second.

    >>> import dy2st as paddle
    >>> paddle.softmax(paddle.zeros([2])).tolist()
    [0.5, 0.5]
    """
    x = floating(input, "softmax")
    x = x if dtype is None else cast_to(x, as_dtype(dtype))
    if x.ndim == 0:
        return x - x + 1.0
    axis = (0 if x.ndim in (1, 3) else 1) if dim is None else dim
    return apply(op("softmax"), x, axis=one_axis(axis, x.ndim, "softmax"))
