"""Exponentials and logarithms: exp, expm1, exp2, log, log1p, log2, log10."""

from __future__ import annotations

import math

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.elementwise_base import Unary


class Exp(Unary):
    """e ** x."""

    name = "exp"
    amp = "high"
    formula = "exp"
    defined_on = "fc"
    function = "exp"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return out


class Expm1(Unary):
    """e ** x - 1, exact also near 0."""

    name = "expm1"
    amp = "high"
    formula = "exp"
    defined_on = "fc"
    function = "expm1"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.add(out, 1)


class Exp2(Unary):
    """2 ** x."""

    name = "exp2"
    amp = "high"
    formula = "exp"
    defined_on = "fc"
    function = "exp2"

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(out, math.log(2))


class Log(Unary):
    """The natural logarithm; -inf at 0, NaN below."""

    name = "log"
    amp = "high"
    formula = "log"
    defined_on = "fc"
    function = "log"
    domain = (0.5, 2.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.reciprocal(x)


class Log1p(Unary):
    """log(1 + x), exact also near 0."""

    name = "log1p"
    amp = "high"
    formula = "log"
    defined_on = "fc"
    function = "log1p"
    domain = (-0.5, 2.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.reciprocal(b.add(x, 1))


class Log2(Unary):
    """The logarithm to base 2."""

    name = "log2"
    amp = "high"
    formula = "log"
    defined_on = "fc"
    function = "log2"
    domain = (0.5, 2.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(1 / math.log(2), b.reciprocal(x))


class Log10(Unary):
    """The logarithm to base 10."""

    name = "log10"
    amp = "high"
    formula = "log"
    defined_on = "fc"
    function = "log10"
    domain = (0.5, 2.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(1 / math.log(10), b.reciprocal(x))
