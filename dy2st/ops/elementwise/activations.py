"""Functions shaped by the logistic curve or the normal distribution: sigmoid, log_sigmoid, softplus, silu, gelu."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.base import Elementwise, Sample
from dy2st.ops.core.elementwise_base import Tangents, Unary, as_array
from dy2st.ops.elementwise.erf import erfc_values


def sigmoid_values(xp: Any, x: Any) -> Any:
    """1 / (1 + e ** -x) without overflow: the exponential is taken of what has no positive (real) part."""
    negative = x.real < 0
    small = xp.exp(xp.where(negative, x, -x)) if x.dtype.kind == "c" else xp.exp(-xp.abs(x))
    return xp.where(negative, small, xp.ones((), x.dtype)) / (1 + small)


class Sigmoid(Unary):
    """1 / (1 + e ** -x); derivative s * (1 - s)."""

    name = "sigmoid"
    formula = "activations"
    defined_on = "fc"

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, sigmoid_values(xp, x))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(out, b.sub(1, out))


class LogSigmoid(Unary):
    """log(sigmoid(x)) without underflow; derivative sigmoid(-x)."""

    name = "log_sigmoid"
    formula = "activations"
    defined_on = "f"

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, xp.minimum(x, xp.zeros((), x.dtype)) - xp.log1p(xp.exp(-xp.abs(x))))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.sigmoid(b.neg(x))


class Silu(Unary):
    """x * sigmoid(x), also called swish."""

    name = "silu"
    formula = "activations"
    defined_on = "fc"

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, x * sigmoid_values(xp, x))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        s = b.sigmoid(x)
        return b.mul(s, b.add(1, b.mul(x, b.sub(1, s))))


class Softplus(Elementwise):
    """log(1 + e ** (beta * x)) / beta, and x itself where beta * x is above `threshold`."""

    name = "softplus"
    nanoseconds = 15
    formula = "activations"
    defined_on = "f"
    attributes = ("beta", "threshold")
    fresh = True

    def eval(self, xp: Any, x: Any, *, beta: float, threshold: float) -> Any:
        scaled = beta * x
        return as_array(xp, xp.where(scaled > threshold, x, xp.logaddexp(scaled, xp.zeros((), x.dtype)) / beta))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, beta: float, threshold: float) -> Any:  # fmt: skip
        scaled = b.mul(primals[0], beta)
        curve = b.mul(tangents[0], b.sigmoid(scaled))
        return b.where(b.gt(scaled, threshold), tangents[0], curve)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for beta, threshold in ((1.0, 20.0), (2.0, 1.0)):
            for shape in ((2, 3), (), (0, 2)):
                yield Sample((rng.uniform(0.6, 2, size=shape),), {"beta": beta, "threshold": threshold})
                yield Sample((rng.uniform(-2, 0.4, size=shape),), {"beta": beta, "threshold": threshold})


class Gelu(Elementwise):
    """x * Phi(x) with the normal distribution function Phi (Hendrycks and Gimpel 2016, arXiv:1606.08415).

    With `approximate`, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))), from the same paper.
    """

    name = "gelu"
    nanoseconds = 85
    formula = "erf"
    defined_on = "f"
    attributes = ("approximate",)
    fresh = True

    def eval(self, xp: Any, x: Any, *, approximate: bool) -> Any:
        if approximate:
            return as_array(xp, 0.5 * x * (1 + xp.tanh(_SCALE * (x + _CUBIC * (x * x * x)))))
        return as_array(xp, 0.5 * x * erfc_values(xp, -x / math.sqrt(2)).astype(x.dtype))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, approximate: bool) -> Any:  # fmt: skip
        slope = _tanh_slope(b, primals[0]) if approximate else _normal_slope(b, primals[0])
        return b.mul(tangents[0], slope)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for approximate in (False, True):
            for shape in ((2, 3), (), (0, 2)):
                yield Sample((rng.normal(size=shape),), {"approximate": approximate})


_SCALE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


def _normal_slope(b: Builder, x: Value) -> Value:
    """Phi(x) + x * phi(x)."""
    distribution = b.mul(0.5, b.add(1, b.erf(b.mul(x, math.sqrt(0.5)))))
    density = b.mul(b.exp(b.mul(-0.5, b.mul(x, x))), 1 / math.sqrt(2 * math.pi))
    return b.add(distribution, b.mul(x, density))


def _tanh_slope(b: Builder, x: Value) -> Value:
    """0.5 (1 + t) + 0.5 x (1 - t**2) sqrt(2 / pi) (1 + 3 * 0.044715 x**2), t the tanh."""
    square = b.mul(x, x)
    t = b.tanh(b.mul(_SCALE, b.mul(x, b.add(1, b.mul(_CUBIC, square)))))
    inner = b.mul(_SCALE, b.add(1, b.mul(3 * _CUBIC, square)))
    curve = b.mul(b.mul(x, b.sub(1, b.mul(t, t))), inner)
    return b.mul(0.5, b.add(b.add(1, t), curve))
