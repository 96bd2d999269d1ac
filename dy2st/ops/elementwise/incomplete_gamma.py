"""The regularised incomplete gamma functions, P(a, x) and Q(a, x) = 1 - P(a, x).

Below x = a + 1 the power series of P (dlmf.nist.gov, 8.7.1), above it the continued fraction of Q (8.9.2, evaluated as
W. Lentz, "Generating Bessel functions in Mie scattering calculations", 1976, does). Both compute in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents, Ufunc, as_array
from dy2st.ops.elementwise.gamma import lgamma_values

_EPSILON, _TINY, _TURNS = 2.0**-53, 1e-300, 20_000


def upper_and_lower(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Compute (Q, P) in float64; NaN where a or x is negative, or both are 0, or a is infinite."""
    a, x = a.astype(xp.float64), x.astype(xp.float64)
    good = (a > 0) & (x > 0) & xp.isfinite(x) & xp.isfinite(a)
    small = good & (x < a + 1)
    shape, at = xp.where(good, a, 1.0), xp.where(good, x, 1.0)
    factor = xp.exp(shape * xp.log(at) - at - lgamma_values(xp, shape))
    low = xp.clip(factor * _series(xp, xp.where(small, shape, 1.0), xp.where(small, at, 1.0)), 0.0, 1.0)
    high = xp.clip(factor * _fraction(xp, xp.where(small, 1.0, shape), xp.where(small, 3.0, at)), 0.0, 1.0)
    upper = xp.where(small, 1.0 - low, high)
    lower = xp.where(small, low, 1.0 - high)
    # x = 0 leaves nothing below, a = 0 and x = inf nothing above
    known = (a >= 0) & (x >= 0) & ((a > 0) | (x > 0)) & xp.isfinite(a) & ~good
    empty = xp.where(x == 0, 1.0, 0.0)
    return (xp.where(good, upper, xp.where(known, empty, xp.nan)),
            xp.where(good, lower, xp.where(known, 1.0 - empty, xp.nan)))  # fmt: skip


def _series(xp: Any, a: Any, x: Any) -> Any:
    term = total = 1.0 / a
    for n in range(1, _TURNS):
        term = term * x / (a + n)
        total = total + term
        if bool((term <= total * _EPSILON).all()):
            break
    return total


def _fraction(xp: Any, a: Any, x: Any) -> Any:
    b = x + 1.0 - a
    c = xp.full_like(b, 1.0 / _TINY)
    d = 1.0 / xp.where(xp.abs(b) < _TINY, _TINY, b)
    found = d
    for n in range(1, _TURNS):
        numerator = n * (a - n)
        b = b + 2.0
        d = numerator * d + b
        d = 1.0 / xp.where(xp.abs(d) < _TINY, _TINY, d)
        c = b + numerator / c
        c = xp.where(xp.abs(c) < _TINY, _TINY, c)
        found = found * d * c
        if bool((xp.abs(d * c - 1.0) <= 2 * _EPSILON).all()):
            break
    return found


class _Incomplete(Ufunc):
    """A function of a, which has to be held, and x; the derivative by x is `sign` times x^(a - 1) e^-x / Gamma(a)."""

    abstract = True
    defined_on = "f"
    arity = 2
    nanoseconds = 2000
    domain = (0.5, 4.0)
    sign: ClassVar[float]

    def eval(self, xp: Any, a: Any, x: Any) -> Any:
        return as_array(xp, upper_and_lower(xp, a, x)[self.sign > 0].astype(x.dtype))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        (a, x), (da, dx) = primals, tangents
        if da is not None or dx is None:
            raise TypeError(f"{self.name} has no derivative by its first operand")
        density = b.exp(b.sub(b.sub(b.mul(b.sub(a, 1.0), b.log(x)), x), b.lgamma(a)))
        return b.safe_mul(dx, b.mul(density, self.sign))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for sample in super().samples(rng):
            yield Sample(sample.operands, differentiate=False)
        yield Sample((np.array([20.0, 3.0, 0.1]), np.array([15.0, 90.0, 1e-3])), differentiate=False)


class GammaIncC(_Incomplete):
    """Q(a, x), the upper one."""

    name = "gammaincc"
    sign = -1.0


class GammaInc(_Incomplete):
    """P(a, x), the lower one."""

    name = "gammainc"
    sign = 1.0
