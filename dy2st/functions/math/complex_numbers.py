"""Parts of complex numbers, and complex numbers from parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, number, op, pair, tensor
from dy2st.functions.math import math
from dy2st.functions.math.comparison import where
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.creation import zeros_like
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_REAL, _IMAG, _CONJ, _COMPLEX = op("real"), op("imag"), op("conj"), op("complex")


def real(x: Any, name: str | None = None) -> Tensor:
    """Return the real parts; a real tensor as it is.

    >>> import dy2st as paddle
    >>> paddle.real(paddle.to_tensor([1 + 2j])).tolist()
    [1.0]
    """
    x = tensor(x, "real")
    return apply(_REAL, x) if x.dtype.is_complex else x


def imag(x: Any, name: str | None = None) -> Tensor:
    """Return the imaginary parts; zeros of a real tensor."""
    x = tensor(x, "imag")
    return apply(_IMAG, x) if x.dtype.is_complex else zeros_like(x)


def conj(x: Any, name: str | None = None) -> Tensor:
    """Return the conjugates; a real tensor as it is."""
    x = tensor(x, "conj")
    return apply(_CONJ, x) if x.dtype.is_complex else x


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Return real + i imag, broadcast.

    >>> import dy2st as paddle
    >>> paddle.complex(paddle.to_tensor([1.0]), paddle.to_tensor([2.0])).tolist()
    [(1+2j)]
    """
    return apply(_COMPLEX, *pair(floating(real, "complex"), imag, "complex"))


def angle(x: Any, name: str | None = None) -> Tensor:
    """Return the angles of complex numbers in (-pi, pi]; of real numbers 0, or pi below 0."""
    x = floating(x, "angle")
    if x.dtype.is_complex:
        return math.atan2(imag(x), real(x))
    return where(x != x, x, where(x < 0, number(np.pi, x.dtype, x), number(0.0, x.dtype, x)))


def polar(abs: Any, angle: Any, name: str | None = None) -> Tensor:
    """Return the complex numbers of these absolute values and angles."""
    size, angle = pair(floating(abs, "polar"), angle, "polar")
    return complex(size * math.cos(angle), size * math.sin(angle))


def as_complex(x: Any, name: str | None = None) -> Tensor:
    """Return the complex numbers whose parts are the two elements along the last axis.

    >>> import dy2st as paddle
    >>> paddle.as_complex(paddle.to_tensor([[1.0, 2.0]])).tolist()
    [(1+2j)]
    """
    x = floating(x, "as_complex")
    if not x.ndim or x.shape[-1] != 2:
        raise ValueError(f"as_complex needs a last axis of 2 parts, not {x.shape}")
    return complex(x[..., 0], x[..., 1])


def as_real(x: Any, name: str | None = None) -> Tensor:
    """Return the real and imaginary parts along a new last axis."""
    x = tensor(x, "as_real")
    if not x.dtype.is_complex:
        raise TypeError(f"as_real needs complex numbers, not {x.dtype.name}")
    return stack([real(x), imag(x)], -1)


def isreal(x: Any, name: str | None = None) -> Tensor:
    """Say of each number whether its imaginary part is 0."""
    return imag(x) == 0


def view_as_complex(input: Any) -> Tensor:
    """Do what `as_complex` does."""
    return as_complex(input)


def view_as_real(input: Any) -> Tensor:
    """Do what `as_real` does."""
    return as_real(input)


def whole(x: Any, name: str) -> Tensor:
    """Return x as complex numbers of its precision."""
    x = floating(x, name)
    if x.dtype.is_complex:
        return x
    return complex(cast_to(x, dtypes.float32) if x.dtype.bits < 32 else x, zeros_like(x))
