"""Elementwise arithmetic: add, sub, mul, safe_mul, div, neg, reciprocal. Operands have one dtype; casts come before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.base import Elementwise, Sample
from dy2st.ops.core.elementwise_base import Tangents, Ufunc, Unary, as_array


class Add(Ufunc):
    """x + y."""

    name = "add"
    adds_second = 1
    commutative = True
    function = "add"
    arity = 2
    linear_together = (0, 1)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        dx, dy = tangents
        return b.add(dx, dy) if dx is not None and dy is not None else (dx if dx is not None else dy)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [cts[0] if one else None for one in linear]


class Sub(Ufunc):
    """x - y."""

    name = "sub"
    adds_second = -1
    function = "subtract"
    arity = 2
    linear_together = (0, 1)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        dx, dy = tangents
        if dx is not None and dy is not None:
            return b.sub(dx, dy)
        return dx if dx is not None else b.neg(dy)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [cts[0] if linear[0] else None, b.neg(cts[0]) if linear[1] else None]


class Mul(Ufunc):
    """x * y."""

    name = "mul"
    commutative = True
    function = "multiply"
    arity = 2
    linear_in = (0, 1)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.mul(cts[0], operands[1]), None] if linear[0] else [None, b.mul(operands[0], cts[0])]


class SafeMul(Elementwise):
    """x * y, and 0 wherever x or y is exactly 0, also beside an infinity or NaN.

    Rules of ops with singular derivatives (sqrt, log, division) multiply tangents and cotangents with it, so that a
    cotangent of exactly 0 stays 0 there.
    """

    name = "safe_mul"
    commutative = True
    defined_on = "fc"
    linear_in = (0, 1)
    fresh = True

    def eval(self, xp: Any, x: Any, y: Any) -> Any:
        with np.errstate(invalid="ignore"):
            product = xp.multiply(x, y)
        return as_array(xp, xp.where((x == 0) | (y == 0), xp.zeros((), product.dtype), product))

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.safe_mul(cts[0], operands[1]), None] if linear[0] else [None, b.safe_mul(operands[0], cts[0])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))))


class Div(Ufunc):
    """x / y of floats or complex numbers."""

    name = "div"
    long_latency = True
    defined_on = "fc"
    function = "true_divide"
    arity = 2
    linear_in = (0,)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        (_, y), (dx, dy) = primals, tangents
        if dx is None:
            return b.neg(b.safe_mul(dy, b.div(outs[0], y)))
        rest = dx if dy is None else b.sub(dx, b.safe_mul(dy, outs[0]))
        return b.safe_mul(rest, b.reciprocal(y))

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.safe_mul(cts[0], b.reciprocal(operands[1])), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample((rng.normal(size=shape), rng.uniform(1, 2, size=shape)))


class Neg(Ufunc):
    """-x."""

    name = "neg"
    function = "negative"
    linear_in = (0,)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.neg(cts[0])]


class Reciprocal(Unary):
    """1 / x."""

    name = "reciprocal"
    long_latency = True
    defined_on = "fc"
    function = "reciprocal"
    domain = (0.5, 2.0)
    singular = True

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.neg(b.mul(out, out))
