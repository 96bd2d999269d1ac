"""The logarithm of |Gamma| and its derivatives: lgamma, digamma, polygamma, from NumPy's arithmetic alone.

All compute in float64. Positive arguments are moved by the recurrence Gamma(x + 1) = x Gamma(x) to where an expansion
holds, negative ones by reflection (NIST Digital Library of Mathematical Functions, dlmf.nist.gov, 5.5 and 5.15);
large ones use the asymptotic series 5.11.1, 5.11.2 and 5.15.8-9. The polynomials interpolate lgamma(1 + z) / z,
lgamma(2 + z) / z and digamma(x) / (x - root), computed to 50 digits, at Chebyshev nodes. Near the zeros of lgamma and
digamma on the negative axis the error is small against 1, not against the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.base import Elementwise, Sample
from dy2st.ops.core.elementwise_base import Tangents, Unary, as_array
from dy2st.ops.elementwise.erf import polynomial

# lgamma(1 + z) / z on [-0.5, 0.5] in powers of 2 z, the lowest first.
LGAMMA_AT_1 = (
    -0.5772156649015329, 0.4112335167120566, -0.10017140859663268, 0.033822601053472984, -0.012961596939305287,
    0.005298661781175404, -0.0022507796366272514, 0.0009805442929744243, -0.0004348994819646889,
    0.00019550675582846567, -8.882222800602594e-05, 4.070009102748318e-05, -1.8782677728880446e-05,
    8.720000104874283e-06, -4.067807983828033e-06, 1.9067327863009197e-06, -9.013866487844909e-07,
    4.257058880666239e-07, -1.930073007583108e-07, 9.159251884407592e-08, -5.671275187205212e-08,
    2.7166352031228983e-08, 1.179060537396483e-09, -6.43695866612875e-10, -1.0369093248289851e-08,
    5.0263289416346195e-09, 2.901580460903526e-09, -1.4117178809550816e-09, -8.950101417557099e-10,
    4.3435418361165637e-10,
)  # fmt: skip
# lgamma(2 + z) / z on [-0.5, 0.5] in powers of 2 z, the lowest first.
LGAMMA_AT_2 = (
    0.42278433509846713, 0.1612335167120566, -0.016838075263299536, 0.0025726010534730713, -0.0004615969392917596,
    9.032844783558553e-05, -1.863677987501598e-05, 3.981793163166481e-06, -8.716982450984518e-07,
    1.942529474587772e-07, -4.387338974983724e-08, 1.0013314167996967e-08, -2.3043112100202176e-09,
    5.339813130999916e-10, -1.2481202067269968e-10, 2.923176066319201e-11, -6.566709534240663e-12,
    1.5491338158886129e-12, -5.116584685713687e-13, 1.2167067542304562e-13,
)  # fmt: skip
# digamma(x) / (x - root) on [1, 2] in powers of 2 x - 3, the lowest first.
DIGAMMA_AT_ROOT = (
    0.9510558760318328, -0.2118137106407303, 0.060135621060196744, -0.018550615381735115, 0.005936795278305649,
    -0.0019350666648590097, 0.0006368880303257201, -0.00021074841140458636, 6.995018873950506e-05,
    -2.325824239445257e-05, 7.741232223504057e-06, -2.57809436305308e-06, 8.589127353033379e-07,
    -2.86315275846934e-07, 9.542050972688906e-08, -3.163020268955334e-08, 1.0542687624027994e-08,
    -3.7075072647122386e-09, 1.2358072433984831e-09, -2.7619635330317715e-10, 9.206434499177992e-11,
    -8.498137230186096e-11, 2.832706668021759e-11,
)  # fmt: skip
DIGAMMA_ROOT = (1.4616321449683622, 9.549995429965697e-17)
"""Where digamma is 0, in two parts."""
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
LARGE = 10.0


def lgamma_values(xp: Any, x: Any) -> Any:
    """Compute log |Gamma(x)| in float64; infinite at 0, -1, -2, ... and at both infinities."""
    x = x.astype(xp.float64)
    positive = _lgamma_positive(xp, xp.where(x < 0, 1 - x, x))
    reflected = xp.log(math.pi / xp.abs(xp.sin(math.pi * (x - xp.rint(x))))) - positive
    return xp.where(xp.isinf(x), xp.full((), xp.inf), xp.where(x < 0, reflected, positive))


def _lgamma_positive(xp: Any, x: Any) -> Any:
    y = xp.clip(x, 0.5, LARGE)
    factor = xp.ones_like(y)
    for _ in range(8):
        above = y > 2.5
        y = xp.where(above, y - 1, y)
        factor = xp.where(above, factor * y, factor)
    low = y < 1.5
    z = xp.where(low, y - 1, y - 2)
    ratio = xp.where(low, polynomial(2 * z, LGAMMA_AT_1[::-1]), polynomial(2 * z, LGAMMA_AT_2[::-1]))
    near = z * ratio + xp.log(factor)
    tiny = xp.clip(x, 0.0, 0.5)
    below = tiny * polynomial(2 * tiny, LGAMMA_AT_1[::-1]) - xp.log(tiny)
    far = xp.maximum(x, xp.full((), LARGE))
    inverse = 1 / (far * far)
    series = tuple(BERNOULLI[k] / ((2 * k + 1) * (2 * k + 2)) for k in range(8))
    stirling = (far - 0.5) * (xp.log(far) - 1) + (0.5 * math.log(2 * math.pi) - 0.5)
    stirling = stirling + polynomial(inverse, series[::-1]) / far
    return xp.where(x < 0.5, below, xp.where(x < LARGE, near, stirling))


def digamma_values(xp: Any, x: Any) -> Any:
    """Compute the derivative of lgamma in float64; NaN at -1, -2, ..., an infinity of the sign of -x at 0."""
    x = x.astype(xp.float64)
    positive = _digamma_positive(xp, xp.where(x < 0, 1 - x, x))
    fraction = x - xp.rint(x)
    reflected = xp.where(fraction == 0, xp.full((), xp.nan), positive - math.pi / xp.tan(math.pi * fraction))
    return xp.where(x < 0, reflected, xp.where(x == 0, -xp.copysign(xp.full((), xp.inf), x), positive))


def _digamma_positive(xp: Any, x: Any) -> Any:
    y = xp.clip(x, 0.0, LARGE)
    total = xp.where(y < 1, -1 / y, xp.zeros_like(y))
    y = xp.where(y < 1, y + 1, y)
    for _ in range(8):
        above = y > 2
        y = xp.where(above, y - 1, y)
        total = xp.where(above, total + 1 / y, total)
    near = ((y - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1]) * polynomial(2 * y - 3, DIGAMMA_AT_ROOT[::-1]) + total
    far = xp.maximum(x, xp.full((), LARGE))
    inverse = 1 / (far * far)
    series = tuple(BERNOULLI[k] / (2 * k + 2) for k in range(8))
    large = xp.log(far) - 0.5 / far - inverse * polynomial(inverse, series[::-1])
    return xp.where(x < LARGE, near, large)


def polygamma_values(xp: Any, x: Any, n: int) -> Any:
    """Compute the n-th derivative (n >= 1) of digamma in float64."""
    x = x.astype(xp.float64)
    positive = _polygamma_positive(xp, xp.where(x < 0, 1 - x, x), n)
    cotangent = 1 / xp.tan(math.pi * (x - xp.rint(x)))
    reflected = (-1.0) ** n * positive - math.pi ** (n + 1) * polynomial(cotangent, cotangent_derivative(n))
    return xp.where(x < 0, reflected, positive)


def _polygamma_positive(xp: Any, x: Any, n: int) -> Any:
    """Compute n! times the sum over k >= 0 of (x + k) ** -(n + 1), up to sign; the tail by its asymptotic series."""
    large = LARGE + n
    factorial = math.gamma(n + 1)
    total = xp.zeros_like(x)
    for k in range(int(large)):
        total = total + xp.where(x + k < large, (x + k) ** -(n + 1.0), xp.zeros((), x.dtype))
    far = xp.where(x < large, x + xp.ceil(large - x), x)
    inverse = 1 / (far * far)
    tail = 1 / n + 0.5 / far + inverse * polynomial(inverse, tail_series(n))
    return (-1.0) ** (n + 1) * factorial * (total + far ** -float(n) * tail)


def tail_series(n: int) -> tuple[float, ...]:
    """Return the asymptotic series of the tail of polygamma of order n in 1 / x**2, the highest power first."""
    return tuple(
        bernoulli * math.exp(math.lgamma(2 * k + n + 2) - math.lgamma(2 * k + 3) - math.lgamma(n + 1))
        for k, bernoulli in enumerate(BERNOULLI)
    )[::-1]


def cotangent_derivative(n: int) -> tuple[float, ...]:
    """The n-th derivative of cot as a polynomial in cot, the highest power first: each step is -(1 + c**2) P'(c)."""
    lowest_first = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(lowest_first)][1:]
        lowest_first = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            lowest_first[k] -= c
            lowest_first[k + 2] -= c
    return tuple(lowest_first[::-1])


class LGamma(Unary):
    """log |Gamma(x)|; derivative digamma."""

    name = "lgamma"
    nanoseconds = 140
    formula = "gamma"
    defined_on = "f"
    domain = (0.5, 4.0)
    singular = True

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, lgamma_values(xp, x).astype(x.dtype))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.digamma(x)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([-0.3, -1.6, 0.2, 12.5]),))


class Digamma(Unary):
    """The derivative of lgamma."""

    name = "digamma"
    nanoseconds = 95
    formula = "gamma"
    defined_on = "f"
    domain = (0.5, 4.0)
    singular = True

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, digamma_values(xp, x).astype(x.dtype))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.polygamma(x, n=1)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield Sample((np.array([-0.3, -1.6, 0.2, 12.5]),))


class Polygamma(Elementwise):
    """The n-th derivative of digamma; n is 1 or more."""

    name = "polygamma"
    nanoseconds = 200
    defined_on = "f"
    attributes = ("n",)
    fresh = True

    def eval(self, xp: Any, x: Any, *, n: int) -> Any:
        if n < 1:
            raise ValueError(f"polygamma needs n >= 1, not {n}; the derivative of order 0 is digamma")
        return as_array(xp, polygamma_values(xp, x, n).astype(x.dtype))

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, n: int) -> Any:  # fmt: skip
        return b.safe_mul(tangents[0], b.polygamma(primals[0], n=n + 1))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for n in (1, 2, 3):
            yield Sample((rng.uniform(0.5, 4, size=(2, 3)),), {"n": n})
        yield Sample((np.array([-0.3, -1.6, 0.2, 12.5]),), {"n": 1})
        yield Sample((np.array(2.5),), {"n": 2})
        yield Sample((np.zeros((0, 2)),), {"n": 1})
