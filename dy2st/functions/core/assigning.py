"""Copies and writes: `clone`, `assign`, and what every `out=` and in-place form does with a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.functions.core.operands import cast_to, op, tensor
from dy2st.ir.context import current, replaced
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.lazy_init import overwritten, shape_of
from dy2st.runtime.eager.tensor import Tensor

_CAST, _DETACH, _BROADCAST = op("cast"), op("detach"), op("broadcast")


def clone(x: Tensor, name: str | None = None) -> Tensor:
    """Return a copy with memory of its own, through which gradients flow.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0])
    >>> y = x.clone()
    >>> y.zero_() is y, x.tolist()
    (True, [1.0])
    """
    return apply(_CAST, x, dtype=x.dtype)


def detach(x: Tensor) -> Tensor:
    """Return a tensor that shares the memory and has no history."""
    return apply(_DETACH, x)


def write(x: Tensor, new: Tensor) -> Tensor:
    """Write a result into `x`, in its dtype and broadcast to its shape; return x."""
    new = cast_to(new, x.dtype)
    if current().trace is not None:
        return inplace.write(x, new)
    inplace.refuse_values(x, new)
    if new.payload.shape != x.payload.shape:
        try:
            np.broadcast_shapes(x.payload.shape, new.payload.shape)
            new = apply(_BROADCAST, new, shape=x.payload.shape)
        except ValueError:
            raise ValueError(f"a value of shape {new.shape} cannot be written into a tensor of {x.shape}") from None
    return inplace.write(x, new)


def into(out: Tensor | None, result: Any) -> Any:
    """Return the result, or `out` with the result written into it."""
    return result if out is None else write(out, result)


def assign(x: Any, output: Tensor | None = None) -> Tensor:
    """Return a copy of a tensor, array, list or number (floats in float64), or `output`, with it written there.

    >>> import dy2st as paddle
    >>> paddle.assign([1, 2]).tolist()
    [1, 2]
    """
    if isinstance(x, Tensor):
        copied = clone(x)
    else:
        copied = tensor(np.array(x), "assign")
    return into(output, copied)


def set_value(x: Tensor, value: Any) -> Tensor:
    """Write a tensor or array of the same shape into x; no history is kept, a leaf stays a leaf."""
    new = value if isinstance(value, Tensor) else tensor(np.asarray(value), "set_value")
    if current().trace is None and list(new.shape) != shape_of(x):
        raise ValueError(f"set_value: the value has shape {new.shape}, the tensor {x.shape}")
    with overwritten(x, new):
        return without_history(x, new)


def without_history(x: Tensor, new: Tensor) -> Tensor:
    """Write `new` into `x` and leave the history of x as it is."""
    with replaced(grad=False):
        return write(x, new)
