"""asin, acos, atan and atan2, each by a minimax polynomial on a small range that identities lead to."""

from __future__ import annotations

import math

from dy2st.runtime.backends.cpu.libm.core.coefficients import (
    ASIN_F32,
    ASIN_F64,
    ATAN_F32,
    ATAN_F64,
    HALF_PI_F32,
    HALF_PI_F64,
)
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY
from dy2st.runtime.backends.cpu.libm.core.registry import formula

_ASIN = {"f32": ASIN_F32, "f64": ASIN_F64}
_ATAN = {"f32": ATAN_F32, "f64": ATAN_F64}
_HALF_PI = {"f32": HALF_PI_F32, "f64": HALF_PI_F64}


@formula
def asin(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the arcsine; above 1/2 as pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
    a = e.abs(x)
    small = a < 0.5
    y = _asin_small(e, a, small)
    head, tail = _HALF_PI[x.kind]
    far = head - ((y + y) - tail)
    return e.copysign(e.select(small, y, far), x)


@formula
def acos(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the arccosine."""
    a = e.abs(x)
    small = a < 0.5
    y = _asin_small(e, a, small)
    head, tail = _HALF_PI[x.kind]
    near = head - (e.copysign(y, x) - tail)
    far = y + y
    far = e.select(x < 0.0, 2.0 * head - (far - 2.0 * tail), far)
    return e.select(small, near, far)


def _asin_small(e: FormulaEmitter, a: VectorValue, small: VectorValue) -> VectorValue:
    """Write the arcsine of a, or where it is not small of sqrt((1 - a) / 2)."""
    z_far = (1.0 - a) * 0.5
    s = e.select(small, a, e.sqrt(z_far))
    z = e.select(small, a * a, z_far)
    return e.fma(s * z, e.polynomial(z, _ASIN[a.kind]), s)


@formula
def atan(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the arctangent."""
    a = e.abs(x)
    return e.copysign(_atan_of_ratio(e, a, e.constant(x.kind, 1.0)), x)


@formula
def atan2(e: FormulaEmitter, y: VectorValue, x: VectorValue) -> VectorValue:
    """Write the angle of the point (x, y), with the special values of IEEE 754 and C."""
    a, b = e.abs(y), e.abs(x)
    both = a.equals(INFINITY) & b.equals(INFINITY)
    a, b = e.select(both, 1.0, a), e.select(both, 1.0, b)
    # keep the quotient's parts in range: halving both does not change it, but where one is subnormal
    huge = (a > _LARGE[x.kind]) | (b > _LARGE[x.kind])
    tiny = (a < _SMALL[x.kind]) & (b < _SMALL[x.kind])
    scale = e.select(huge, 0.0625, e.select(tiny, e.constant(x.kind, _RAISE[x.kind]), 1.0))
    angle = _atan_of_ratio(e, a * scale, b * scale)
    head, tail = _HALF_PI[x.kind]
    angle = e.select(a.equals(0.0), 0.0, angle)
    left = e.bits(x) < 0
    angle = e.select(left, 2.0 * head - (angle - 2.0 * tail), angle)
    angle = e.select(x.is_nan | y.is_nan, math.nan, angle)
    return e.copysign(angle, y)


_LARGE = {"f32": 2.0**124, "f64": 2.0**1020}
_SMALL = {"f32": 2.0**-90, "f64": 2.0**-900}
_RAISE = {"f32": 2.0**30, "f64": 2.0**80}


def _atan_of_ratio(e: FormulaEmitter, a: VectorValue, b: VectorValue) -> VectorValue:
    """Write atan(a / b) for a, b >= 0: about 0, 1 or infinity, whichever is near, by t of at most sqrt(2) - 1."""
    head, tail = _HALF_PI[a.kind]
    low, high = a < b * (math.sqrt(2) - 1), a > b * (math.sqrt(2) + 1)
    above = e.select(low, a, e.select(high, -b, a - b))
    below = e.select(low, b, e.select(high, a, a + b))
    t = above / below
    z = t * t
    share = e.select(low, 0.0, e.select(high, e.constant(a.kind, 1.0), 0.5))
    base, rest = share * head, share * tail
    return base + (t + e.fma(t * z, e.polynomial(z, _ATAN[a.kind]), rest))
