"""Hyperbolic functions and their inverses, by e**x - 1 and log(1 + x)."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.coefficients import SINH_F32, SINH_F64
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY, NAN, float_format
from dy2st.runtime.backends.cpu.libm.core.ldexp import power_of_two
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.formulas.exp import exp_parts, expm1
from dy2st.runtime.backends.cpu.libm.formulas.log import log1p

_SINH = {"f32": SINH_F32, "f64": SINH_F64}
# e**x / 2 is infinite above
_END = {"f32": 90.0, "f64": 711.0}
_LOG_2 = 0.6931471805599453


@formula
def sinh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write (e**x - e**-x) / 2; up to 1 by a polynomial."""
    a = e.abs(x)
    z = x * x
    near = e.fma(x * z, e.polynomial(z, _SINH[x.kind]), x)
    up, down = _halves(e, a)
    return e.select(a < 1.0, near, e.copysign(up - down, x))


@formula
def cosh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write (e**x + e**-x) / 2."""
    up, down = _halves(e, e.abs(x))
    return up + down


@formula
def tanh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write tanh(x) = t / (t + 2), t = e**2|x| - 1, with the sign of x."""
    a = e.smallest(e.abs(x), 22.0)
    t = expm1(e, a + a)
    return e.copysign(t / (t + 2.0), x)


@formula
def asinh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log(|x| + sqrt(x**2 + 1)) as log(1 + |x| + x**2 / (1 + sqrt(x**2 + 1))), with the sign of x."""
    a = e.abs(x)
    large = 2.0 ** (float_format(x.kind).precision + 2)
    near = e.smallest(a, large)
    square = near * near
    inner = near + square / (e.sqrt(square + 1.0) + 1.0)
    far = a > large
    result = log1p(e, e.select(far, a, inner))
    return e.copysign(e.select(far, result + _LOG_2, result), x)


@formula
def acosh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log(x + sqrt(x**2 - 1)) as log(1 + t + sqrt(2 t + t**2)), t = x - 1."""
    large = 2.0 ** (float_format(x.kind).precision + 2)
    t = x - 1.0
    near = e.smallest(t, large)
    far = x > large
    result = log1p(e, e.select(far, x, near + e.sqrt(e.fma(near, near, near + near))))
    return e.select(x >= 1.0, e.select(far, result + _LOG_2, result), NAN)


@formula
def atanh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log((1 + x) / (1 - x)) / 2 as log(1 + 2 a / (1 - a)) / 2, a = |x|, with the sign of x."""
    a = e.abs(x)
    return e.copysign(log1p(e, (a + a) / (1.0 - a)) * 0.5, x)


def _halves(e: FormulaEmitter, a: VectorValue) -> tuple[VectorValue, VectorValue]:
    """Write e**a / 2 and e**-a / 2 for a >= 0."""
    parts = exp_parts(e, e.smallest(a, _END[a.kind]))
    growth = parts.excess + 1.0
    half = power_of_two(e, parts.n - 2)
    up = (growth * half) * 2.0
    return up, e.select(up < INFINITY, 0.25 / up, 0.0)
