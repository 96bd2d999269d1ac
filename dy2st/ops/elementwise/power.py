"""Powers and roots: pow, square, sqrt, rsqrt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ops.core.base import Elementwise, Sample
from dy2st.ops.core.elementwise_base import Tangents, Unary, as_array


class Pow(Elementwise):
    """x ** y.

    An integer power that is not an integer is truncated: 2 ** -1 is 0, (-1) ** -3 is -1. The derivative in x is 0 where
    y is 0; the derivative in y is 0 where x is 0 and y is not negative, and NaN where x is negative.
    """

    name = "pow"
    amp = "high"
    formula = "pow"
    defined_on = "iufc"
    fresh = True

    def eval(self, xp: Any, x: Any, y: Any) -> Any:
        if y.dtype.kind == "i" and y.size and bool((y < 0).any()):
            sign = xp.where(y % 2 == 0, xp.ones_like(x), x)
            below_one = xp.where(abs(x) == 1, sign, xp.zeros_like(x))
            return as_array(xp, xp.where(y < 0, below_one, xp.power(x, xp.maximum(y, xp.zeros_like(y)))))
        return as_array(xp, xp.power(x, y))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        (x, y), (dx, dy) = primals, tangents
        in_x = None if dx is None else b.safe_mul(dx, self._slope_in_x(b, x, y))
        if dy is None:
            return in_x
        in_y = b.safe_mul(dy, self._slope_in_y(b, x, y, outs[0]))
        return in_y if in_x is None else b.add(in_x, in_y)

    def _slope_in_x(self, b: Builder, x: Value, y: Value) -> Value:
        """Emit y * x ** (y - 1), with an exponent of 1 in place of -1 at 0 ** 0, where the slope is 0 either way."""
        at_origin = b.logical_and(b.eq(x, 0), b.eq(y, 0))
        exponent = b.where(at_origin, b.ones_like(y), b.sub(y, 1))
        return b.safe_mul(y, b.pow(x, exponent))

    def _slope_in_y(self, b: Builder, x: Value, y: Value, out: Value) -> Value:
        """Emit x ** y * log(x), with log(1) at x = 0, y >= 0."""
        vanishes = b.logical_and(b.eq(x, 0), b.ge(b.real(y) if tensor_type(y).dtype.is_complex else y, 0))
        return b.mul(out, b.log(b.where(vanishes, b.ones_like(x), x)))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample((rng.uniform(0.5, 2, size=shape), rng.uniform(-2, 2, size=shape)))
        yield Sample((np.array([-2, -1, 2, 3]), np.array([3, -3, -1, 2])), differentiate=False)


class Square(Unary):
    """x * x."""

    name = "square"
    amp = "high"
    function = "square"

    def eval(self, xp: Any, x: Any) -> Any:
        return super().eval(xp, x) if x.dtype.kind != "b" else x  # NumPy makes int8 of bool

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(2, x)


class Sqrt(Unary):
    """The square root; NaN below 0."""

    name = "sqrt"
    long_latency = True
    defined_on = "fc"
    function = "sqrt"
    domain = (0.5, 2.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.div(0.5, out)


class Rsqrt(Unary):
    """1 / sqrt(x)."""

    name = "rsqrt"
    amp = "high"
    formula = "pow"
    defined_on = "fc"
    domain = (0.5, 2.0)
    singular = True

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, xp.reciprocal(xp.sqrt(x)))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(-0.5, b.safe_mul(out, b.safe_mul(out, out)))
