"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ops.core.elementwise_base import Tangents, Ufunc, Unary


class Sin(Unary):
    """The sine of an angle in radians."""

    name = "sin"
    formula = "trigonometric"
    defined_on = "fc"
    function = "sin"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.cos(x)


class Cos(Unary):
    """The cosine of an angle in radians."""

    name = "cos"
    formula = "trigonometric"
    defined_on = "fc"
    function = "cos"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.neg(b.sin(x))


class Tan(Unary):
    """The tangent of an angle in radians; derivative 1 + tan(x)**2."""

    name = "tan"
    formula = "trigonometric"
    defined_on = "fc"
    function = "tan"
    domain = (-1.0, 1.0)

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.add(1, b.mul(out, out))


class Asin(Unary):
    """The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]."""

    name = "asin"
    formula = "inverse_trigonometric"
    defined_on = "fc"
    function = "arcsin"
    domain = (-0.8, 0.8)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.rsqrt(b.mul(b.sub(1, x), b.add(1, x)))


class Acos(Unary):
    """The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]."""

    name = "acos"
    formula = "inverse_trigonometric"
    defined_on = "fc"
    function = "arccos"
    domain = (-0.8, 0.8)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.neg(b.rsqrt(b.mul(b.sub(1, x), b.add(1, x))))


class Atan(Unary):
    """The angle in [-pi/2, pi/2] whose tangent is x; derivative 1 / (1 + x**2)."""

    name = "atan"
    formula = "inverse_trigonometric"
    defined_on = "fc"
    function = "arctan"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.reciprocal(b.add(1, b.mul(x, x)))


class Atan2(Ufunc):
    """The angle in [-pi, pi] of the point (x, y); operands are y, then x."""

    name = "atan2"
    formula = "inverse_trigonometric"
    defined_on = "f"
    function = "arctan2"
    arity = 2
    domain = (0.5, 2.0)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        (y, x), (dy, dx) = primals, tangents
        square = b.add(b.mul(x, x), b.mul(y, y))
        in_y = None if dy is None else b.safe_mul(dy, b.div(x, square))
        if dx is None:
            return in_y
        in_x = b.safe_mul(dx, b.neg(b.div(y, square)))
        return in_x if in_y is None else b.add(in_y, in_x)


class Hypot(Ufunc):
    """The distance of the point (x, y) from the origin, where its derivative is taken as 0."""

    name = "hypot"
    formula = "pow"
    defined_on = "f"
    function = "hypot"
    arity = 2
    domain = (0.5, 2.0)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        at_origin = b.eq(outs[0], 0)
        distance = b.where(at_origin, b.ones_like(outs[0]), outs[0])
        terms = [b.mul(t, b.div(x, distance)) for x, t in zip(primals, tangents, strict=True) if t is not None]
        return terms[0] if len(terms) == 1 else b.add(*terms)


class Sinh(Unary):
    """The hyperbolic sine."""

    name = "sinh"
    formula = "hyperbolic"
    defined_on = "fc"
    function = "sinh"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.cosh(x)


class Cosh(Unary):
    """The hyperbolic cosine."""

    name = "cosh"
    formula = "hyperbolic"
    defined_on = "fc"
    function = "cosh"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.sinh(x)


class Tanh(Unary):
    """The hyperbolic tangent; derivative 1 - tanh(x)**2."""

    name = "tanh"
    formula = "hyperbolic"
    defined_on = "fc"
    function = "tanh"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.sub(1, b.mul(out, out))


class Asinh(Unary):
    """The inverse of the hyperbolic sine; derivative 1 / sqrt(1 + x**2)."""

    name = "asinh"
    formula = "hyperbolic"
    defined_on = "fc"
    function = "arcsinh"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.rsqrt(b.add(1, b.mul(x, x)))


class Acosh(Unary):
    """The inverse of the hyperbolic cosine; NaN below 1."""

    name = "acosh"
    formula = "hyperbolic"
    defined_on = "fc"
    function = "arccosh"
    domain = (1.5, 3.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        below, above = b.sub(x, 1), b.add(x, 1)
        if tensor_type(x).dtype.is_complex:  # left of 0 the root of the product is the negative one of the other branch
            return b.safe_mul(b.rsqrt(below), b.rsqrt(above))
        return b.rsqrt(b.mul(below, above))


class Atanh(Unary):
    """The inverse of the hyperbolic tangent; infinite at -1 and 1, NaN outside."""

    name = "atanh"
    formula = "hyperbolic"
    defined_on = "fc"
    function = "arctanh"
    domain = (-0.8, 0.8)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.reciprocal(b.mul(b.sub(1, x), b.add(1, x)))
