"""What the array API standard has otherwise than Paddle, element by element and in products of vectors."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import cast_to
from dy2st.functions.math import math
from dy2st.functions.math.complex_numbers import conj
from dy2st.functions.shape.manipulation import moveaxis
from dy2st.runtime.eager.tensor import Tensor


def round(x: Any, /) -> Tensor:
    """Return x rounded to integers, halves to the even one."""
    return math.round(x)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the sums of products along an axis, of the complex conjugates of `x1` with `x2`."""
    first, second = (moveaxis(x, axis, -1) for x in (x1, x2))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"vecdot: {first.shape[-1]} elements along the axis against {second.shape[-1]}")
    products = (conj(first) if first.dtype.is_complex else first) * second
    return cast_to(products.sum(-1), products.dtype)
