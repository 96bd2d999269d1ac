"""The error function, its complement and its inverse, from NumPy's arithmetic alone.

`erf_values` and `erfc_values` use the rational Chebyshev approximations of W. J. Cody, "Rational Chebyshev
approximations for the error function", Mathematics of Computation 23 (1969) 631-637. `erfinv_values` uses those of
M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988)
477-484, as erfinv(y) = quantile((1 + y) / 2) / sqrt(2). All compute in float64.
"""

from __future__ import annotations

import math
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.elementwise_base import Unary, as_array

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_ONE_OVER_SQRT_PI = 1 / math.sqrt(math.pi)

# Coefficients from the highest power down, numerator and denominator.
_CENTRE = (
    (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3),
    (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MIDDLE = (
    (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
     2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
     1.23033935479799725e3),
    (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_TAIL = (
    (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (1.0, 2.56852019228982242, 1.87295284992346047, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip
_QUANTILE_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_QUANTILE_MIDDLE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
     3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0),
)  # fmt: skip
_QUANTILE_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Evaluate a polynomial, coefficients from the highest power down, by Horner's rule."""
    total: Any = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _rational(x: Any, pair: tuple[tuple[float, ...], tuple[float, ...]]) -> Any:
    return polynomial(x, pair[0]) / polynomial(x, pair[1])


def _near(x: Any) -> Any:
    """Compute erf where |x| <= 0.46875 as x + x * (the ratio - 1), so that roundings of the ratio weigh little."""
    numerator, denominator = _CENTRE
    excess = tuple(p - q for p, q in zip(numerator, denominator, strict=True))
    return x + x * (polynomial(x * x, excess) / polynomial(x * x, denominator))


def _complement(xp: Any, a: Any) -> Any:
    """Compute erfc where a = |x| > 0.46875.

    e ** -a**2 is taken apart into a head of 4 fractional bits, whose square is exact, and the rest.
    """
    far = xp.clip(a, 4.0, 30.0)
    inverse = 1 / (far * far)
    tail = (_ONE_OVER_SQRT_PI - inverse * _rational(inverse, _TAIL)) / far
    scaled = xp.where(a <= 4, _rational(xp.clip(a, 0.0, 4.0), _MIDDLE), tail)
    near = xp.clip(a, 0.0, 30.0)
    head = xp.trunc(near * 16) / 16
    return xp.exp(-head * head) * xp.exp(-(near - head) * (near + head)) * scaled


def erf_values(xp: Any, x: Any) -> Any:
    """Compute erf(x) in float64."""
    x = x.astype(xp.float64)
    a = xp.abs(x)
    outer = xp.copysign(1 - _complement(xp, a), x)
    return xp.where(a <= 0.46875, _near(xp.clip(x, -0.5, 0.5)), outer)


def erfc_values(xp: Any, x: Any) -> Any:
    """Compute 1 - erf(x) in float64, exact also where it is tiny."""
    x = x.astype(xp.float64)
    outer = _complement(xp, xp.abs(x))
    outer = xp.where(x < 0, 2 - outer, outer)
    return xp.where(xp.abs(x) <= 0.46875, 1 - _near(xp.clip(x, -0.5, 0.5)), outer)


def erfinv_values(xp: Any, y: Any) -> Any:
    """Compute the x with erf(x) = y, in float64; infinite at -1 and 1, NaN outside."""
    y = y.astype(xp.float64)
    a = xp.abs(y)
    q = xp.clip(y, -0.85, 0.85) / 2
    centre = q * _rational(0.180625 - q * q, _QUANTILE_CENTRE)
    r = xp.sqrt(-xp.log((1 - xp.clip(a, 0.85, 1.0)) / 2))
    finite = xp.clip(r, 0.0, 40.0)
    middle = _rational(finite - 1.6, _QUANTILE_MIDDLE)
    tail = xp.copysign(xp.where(finite <= 5, middle, _rational(finite - 5, _QUANTILE_TAIL)), y)
    inside = xp.where(a <= 0.85, centre, tail) / math.sqrt(2)
    ends = xp.where(a == 1, xp.copysign(xp.full((), xp.inf), y), xp.full((), xp.nan))
    return xp.where(a < 1, inside, ends)


class Erf(Unary):
    """erf(x) = 2 / sqrt(pi) times the integral of e ** -t**2 from 0 to x."""

    name = "erf"
    nanoseconds = 90
    formula = "erf"
    defined_on = "f"

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, erf_values(xp, x).astype(x.dtype))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(_TWO_OVER_SQRT_PI, b.exp(b.neg(b.mul(x, x))))


class ErfInv(Unary):
    """The x whose erf is y; derivative sqrt(pi) / 2 * e ** x**2."""

    name = "erfinv"
    amp = "high"
    nanoseconds = 80
    formula = "erf"
    defined_on = "f"
    domain = (-0.8, 0.8)
    singular = True

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, erfinv_values(xp, x).astype(x.dtype))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.mul(math.sqrt(math.pi) / 2, b.exp(b.mul(out, out)))
