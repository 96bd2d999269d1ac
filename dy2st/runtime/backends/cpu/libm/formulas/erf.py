"""The error function, its inverse, and the Gaussian error linear unit, from minimax polynomials.

erf is x (1 + P(x**2)) up to 1, beyond it 1 - 2**Q(x) with Q near log2(erfc(x)). gelu takes the upper tail of the normal
distribution as e**(-a**2 / 2) t T(t), t = 1 / (1 + a / 4), so that it keeps its precision where it is nearly 0. erfinv
is x times a polynomial in w = -log(1 - x**2) or its root (as M. Giles, "Approximating the erfinv function", GPU
Computing Gems 2, 2011).
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.runtime.backends.cpu.libm.core.coefficients import (
    ERF_NEAR_F32,
    ERF_NEAR_F64,
    ERFC_LOG2_F32,
    ERFC_LOG2_F64,
    ERFINV_FAR_F32,
    ERFINV_FAR_F64,
    ERFINV_MIDDLE_F64,
    ERFINV_NEAR_F32,
    ERFINV_NEAR_F64,
    NORMAL_TAIL_F32,
    NORMAL_TAIL_F64,
)
from dy2st.runtime.backends.cpu.libm.core.double_double import exact_product
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY, NAN, rounded_whole
from dy2st.runtime.backends.cpu.libm.core.ldexp import power_of_two, scaled
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.formulas.exp import excess, exp_parts
from dy2st.runtime.backends.cpu.libm.formulas.log import log

_NEAR = {"f32": ERF_NEAR_F32, "f64": ERF_NEAR_F64}
_FAR = {"f32": ERFC_LOG2_F32, "f64": ERFC_LOG2_F64}
_TAIL = {"f32": NORMAL_TAIL_F32, "f64": NORMAL_TAIL_F64}
# erf is 1 above, and x times the normal tail is 0, to rounding
_ERF_END = {"f32": 4.0, "f64": 6.0}
_TAIL_END = {"f32": 15.0, "f64": 40.0}
_LOG_2 = 0.6931471805599453


@formula
def erf(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write erf(x)."""
    size = e.abs(x)
    near = e.fma(x, e.polynomial(x * x, _NEAR[x.kind]), x)
    y = e.polynomial(e.smallest(size, _ERF_END[x.kind]), _FAR[x.kind])
    whole, n = rounded_whole(e, y)
    complement = power_of_two(e, n) * (excess(e, (y - whole) * _LOG_2) + 1.0)
    return e.select(size < 1.0, near, e.copysign(1.0 - complement, x))


@formula
def gelu(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x times the normal distribution's share below x: x - x tail(x), for negative x x tail(-x)."""
    end = _TAIL_END[x.kind]
    near = e.largest(e.smallest(x, end), -end)
    a = e.abs(near)
    half_square = exact_product(e, a, a * -0.5)
    growth = exp_parts(e, half_square.head, half_square.tail)
    t = 1.0 / e.fma(a, 0.25, 1.0)
    tail = t * e.polynomial(e.fma(a * t, -0.25, 0.5), _TAIL[x.kind])  # by t - 1/2, without the rounding of t
    share = scaled(e, near * e.fma(growth.excess, tail, tail), growth.n, growth.whole)
    result = e.select(x > 0.0, x - share, share)
    return e.select(x.equals(-INFINITY), NAN, result)


@formula
def erfinv(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the number whose erf is x; infinite at -1 and 1, NaN beyond."""
    w = -log(e, (1.0 - x) * (x + 1.0))
    double = x.kind == "f64"
    if double:
        bound, ratio = 6.25, e.polynomial(w - 3.125, ERFINV_NEAR_F64)
    else:
        bound, ratio = 5.0, e.polynomial(w - 2.5, ERFINV_NEAR_F32)
    far = w > bound

    def beyond(near: Sequence[VectorValue]) -> list[VectorValue]:
        v = e.sqrt(w)
        if double:
            other = e.select(v < 4.0, e.polynomial(v - 3.25, ERFINV_MIDDLE_F64), e.polynomial(v - 5.0, ERFINV_FAR_F64))
        else:
            other = e.polynomial(v - 3.0, ERFINV_FAR_F32)
        return [e.select(far, other, near[0])]

    (ratio,) = e.where_rare(far, [ratio], beyond)
    return e.select(e.abs(x).equals(1.0), e.copysign(INFINITY, x), x * ratio)
