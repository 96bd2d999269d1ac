"""Modified Bessel functions of the first kind, times e ** -|x|: i0e and i1e.

Chebyshev series of our own, made with mpmath: up to 8 in x / 4 - 1, of i0e times h and of i1e over x times h**2, with
h = 1 + x / 2, which vary little, so that few digits cancel; beyond in 16 / x - 1, of the function times the root of x.
I0' = I1 and I1' = I0 - I1 / x (DLMF 10.29).
"""

from __future__ import annotations

from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.core.elementwise_base import Unary, as_array

NEAR_0 = (
    0.7105102392710158, -0.06563184109791033, 0.11527893517538028, -0.06377710538226344, 0.02927734086506501,
    -0.0113604997834327, 0.00357765638283495, -0.0007869939736153938, 1.7741281234849084e-05, 9.885177842143036e-05,
    -6.840886935187844e-05, 3.232548286410744e-05, -1.2613344247093096e-05, 4.315620534472749e-06,
    -1.3316551264925005e-06, 3.766193331633394e-07, -9.866978481766608e-08, 2.4129023650514135e-08,
    -5.539758485978847e-09, 1.1996431345455402e-09, -2.4597355201674473e-10, 4.790835427361534e-11,
    -8.88874960333783e-12, 1.5748804831821103e-12, -2.670444462310383e-13, 4.3421247637624136e-14,
    -6.782287005982848e-15, 1.019315276778969e-15, -1.4761949073660766e-16, 2.0628838049476514e-17,
    -2.7851592513274637e-18, 3.6372932933655953e-19,
)  # fmt: skip
FAR_0 = (
    0.40224520550705442, 0.0033691164782556941, 6.889758346916824e-5, 2.8913705208347565e-6, 2.0489185894690637e-7,
    2.2666689904981781e-8, 3.3962320257083863e-9, 4.9406023882249696e-10, 1.1889147107846438e-11,
    -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12, 7.1801244513836662e-13,
    3.8527783827421427e-13, 1.5400862175214098e-14, -4.1505693472872221e-14, -9.5548466988283076e-15,
    3.8116806693526224e-15, 1.7725601330565264e-15, -3.4254856196772191e-16, -2.8276239805165835e-16,
    3.4612228676974611e-17, 4.46562142029676e-17, -4.8305044859441821e-18, -7.233180487874754e-18,
)  # fmt: skip
NEAR_1 = (
    0.43337407398282785, -0.03855913070121915, 0.03021888366700394, -0.005165750218663486, -0.002269375645275469,
    0.0026327443500220055, -0.0015065566973078454, 0.0006371107354929041, -0.00021261548550017718,
    5.4395055092301106e-05, -8.475507584397673e-06, -9.070737669707607e-07, 1.4085308453163311e-06,
    -7.197218375350473e-07, 2.753213678864705e-07, -8.944970393860861e-08, 2.5861899396705566e-08,
    -6.812394966243522e-09, 1.6581149887548941e-09, -3.7644630898120163e-10, 8.026622698289485e-11,
    -1.6157643652569182e-11, 3.083582168852432e-12, -5.598402748969921e-13, 9.697751506233355e-14,
    -1.6068250741457787e-14, 2.5521904030841808e-15, -3.893607801737522e-16, 5.715382211654287e-17,
    -8.084965981395003e-18, 1.1037610053764041e-18,
)  # fmt: skip
FAR_1 = (
    0.38928811750914006, -0.0097610974913614684, -0.00011058893876262372, -3.8825648088776904e-6,
    -2.5122362378702089e-7, -2.6314688468895195e-8, -3.835380385964237e-9, -5.5897434621965838e-10,
    -1.8974958123505412e-11, 3.2526035830154882e-11, 1.4125807436613781e-11, 2.0356285441470895e-12,
    -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14, 4.2724400167119514e-14,
    1.0420276984128803e-14, -3.8144030724370078e-15, -1.8803547755107824e-15, 3.3082023109209283e-16,
    2.9626289976459501e-16, -3.209525921993424e-17, -4.6503053684893583e-17, 4.4143483230717079e-18,
    7.5172963108421048e-18,
)  # fmt: skip


def _series(coefficients: tuple[float, ...], t: Any) -> Any:
    """Return a Chebyshev series at t, by Clenshaw's recurrence."""
    later, latest = t * 0.0, t * 0.0
    for coefficient in reversed(coefficients[1:]):
        later, latest = coefficient + 2.0 * t * later - latest, later
    return coefficients[0] + t * later - latest


def _both(xp: Any, size: Any, near: tuple[float, ...], far: tuple[float, ...]) -> tuple[Any, Any]:
    """Return both series at |x|, each right on its side of 8; the first has yet to be divided by h."""
    small = _series(near, xp.minimum(size, 8.0) / 4.0 - 1.0)
    large = xp.maximum(size, 8.0)
    return small, _series(far, 16.0 / large - 1.0) / xp.sqrt(large)


class I0E(Unary):
    """The modified Bessel function of order 0 times e ** -|x|."""

    name = "i0e"
    formula = "bessel"
    defined_on = "f"

    def eval(self, xp: Any, x: Any) -> Any:
        size = xp.abs(x).astype(xp.float64)
        small, large = _both(xp, size, NEAR_0, FAR_0)
        return as_array(xp, xp.where(size <= 8.0, small / (1.0 + size / 2.0), large).astype(x.dtype))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        return b.sub(b.i1e(x), b.mul(b.sign(x), out))


class I1E(Unary):
    """The modified Bessel function of order 1 times e ** -|x|."""

    name = "i1e"
    formula = "bessel"
    defined_on = "f"

    def eval(self, xp: Any, x: Any) -> Any:
        size = xp.abs(x).astype(xp.float64)
        small, large = _both(xp, size, NEAR_1, FAR_1)
        inside = xp.minimum(size, 8.0)
        flat = 1.0 + inside / 2.0
        found = xp.where(size <= 8.0, small * inside / (flat * flat), large)
        return as_array(xp, xp.copysign(found, x).astype(x.dtype))

    def slope(self, b: Builder, x: Value, out: Value) -> Value:
        at_0 = b.eq(x, 0)
        ratio = b.div(out, b.where(at_0, b.ones_like(x), x))
        half = b.mul(b.ones_like(x), 0.5)
        return b.sub(b.sub(b.i0e(x), b.mul(b.sign(x), out)), b.where(at_0, half, ratio))
