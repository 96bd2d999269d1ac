"""`polygamma` as arithmetic that goes into a loop nest: the sums and series of `elementwise/gamma.py`, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dy2st.dtypes import float64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.elementwise.gamma import LARGE, cotangent_derivative, tail_series

MOST = 16
"""Up to this order the terms are written one by one; `eval` computes higher orders."""


def polygamma(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Emit the n-th derivative of digamma."""
    n, dtype = operation.attributes["n"], tensor_type(operation.operands[0]).dtype
    if not 1 <= n <= MOST or not dtype.is_floating:
        return None
    x = b.cast(operation.operands[0], dtype=float64)
    below = b.lt(x, 0.0)
    positive = _positive(b, b.where(below, b.sub(1.0, x), x), n)
    cotangent = b.reciprocal(b.tan(b.mul(b.sub(x, b.round(x)), math.pi)))
    slope = b.mul(_polynomial(b, cotangent, cotangent_derivative(n)), math.pi ** (n + 1))
    reflected = b.sub(b.mul(positive, (-1.0) ** n), slope)
    return [b.cast(b.where(below, reflected, positive), dtype=dtype)]


def _positive(b: Builder, x: Value, n: int) -> Value:
    """Emit n! times the sum over k >= 0 of (x + k) ** -(n + 1), up to sign."""
    large, zero = LARGE + n, b.zeros_like(x)
    total = zero
    for k in range(int(large)):
        moved = b.add(x, float(k))
        total = b.add(total, b.where(b.lt(moved, large), _power(b, b.reciprocal(moved), n + 1), zero))
    far = b.where(b.lt(x, large), b.add(x, b.ceil(b.sub(large, x))), x)
    once = b.reciprocal(far)
    inverse = b.mul(once, once)
    series = b.mul(inverse, _polynomial(b, inverse, tail_series(n)))
    tail = b.add(b.add(b.mul(once, 0.5), 1 / n), series)
    return b.mul(b.add(total, b.mul(_power(b, once, n), tail)), (-1.0) ** (n + 1) * math.gamma(n + 1))


def _power(b: Builder, x: Value, n: int) -> Value:
    """Emit the n-th power by squares."""
    if n == 1:
        return x
    half = _power(b, x, n // 2)
    square = b.mul(half, half)
    return b.mul(square, x) if n % 2 else square


def _polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Emit a polynomial, coefficients from the highest power down, by Horner's rule."""
    total = b.add(b.mul(x, coefficients[0]), coefficients[1])
    for c in coefficients[2:]:
        total = b.add(b.mul(total, x), c)
    return total
