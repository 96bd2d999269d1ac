"""sin, cos and tan: x modulo pi / 2 (range_reduction.py), then minimax polynomials on |r| <= pi / 4."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.coefficients import COS_F32, COS_F64, SIN_F32, SIN_F64
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY, NAN
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.formulas.range_reduction import ReducedArgument, range_reduced

_SIN = {"f32": SIN_F32, "f64": SIN_F64}
_COS = {"f32": COS_F32, "f64": COS_F64}


@formula
def sin(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the sine."""
    place = range_reduced(e, x)
    result = _quadrant(e, place, place.n)
    result = e.select(x.equals(0.0), x, result)
    return e.select(e.abs(x) < INFINITY, result, NAN)


@formula
def cos(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the cosine: the sine one quadrant on."""
    place = range_reduced(e, x)
    return e.select(e.abs(x) < INFINITY, _quadrant(e, place, place.n + 1), NAN)


@formula
def tan(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the tangent."""
    place = range_reduced(e, x)
    sine, cosine = _sine(e, place), _cosine(e, place)
    odd = e.compare("ne", place.n & 1, 0)
    ratio = e.select(odd, -cosine, sine) / e.select(odd, sine, cosine)
    ratio = e.select(x.equals(0.0), x, ratio)
    return e.select(e.abs(x) < INFINITY, ratio, NAN)


def _quadrant(e: FormulaEmitter, place: ReducedArgument, n: VectorValue) -> VectorValue:
    """Write the sine of r + n pi / 2."""
    value = e.select(e.compare("ne", n & 1, 0), _cosine(e, place), _sine(e, place))
    return e.select(e.compare("ne", n & 2, 0), -value, value)


def _sine(e: FormulaEmitter, place: ReducedArgument) -> VectorValue:
    r, z = place.r, place.r * place.r
    cube = r * z
    if place.rest is None:
        return e.fma(cube, e.polynomial(z, _SIN[r.kind]), r)
    return r + e.fma(cube, e.polynomial(z, _SIN[r.kind]), place.rest)


def _cosine(e: FormulaEmitter, place: ReducedArgument) -> VectorValue:
    r, z = place.r, place.r * place.r
    half = z * 0.5
    first = 1.0 - half
    small = z * z * e.polynomial(z, _COS[r.kind])
    if place.rest is not None:
        small = e.fma(r, -place.rest, small)
    return first + (((1.0 - first) - half) + small)
