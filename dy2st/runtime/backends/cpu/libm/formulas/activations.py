"""The logistic function and what is made of it."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.coefficients import GELU_CUBIC, GELU_SCALE
from dy2st.runtime.backends.cpu.libm.core.double_double import DoubleDouble, constant, exact_product, exact_sum, product
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY, NAN
from dy2st.runtime.backends.cpu.libm.core.ldexp import scaled
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.formulas.exp import exp, exp_parts
from dy2st.runtime.backends.cpu.libm.formulas.log import log1p

# x e**u is 0 for u below, to rounding
_LEAST = {"f32": -112.0, "f64": -760.0}


@formula
def sigmoid(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write 1 / (1 + e**-x), as e**x / (1 + e**x) for negative x."""
    small = exp(e, -e.abs(x))
    return e.select(x < 0.0, small, 1.0) / (small + 1.0)


@formula
def silu(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x sigmoid(x)."""
    return _times_sigmoid(e, x, x, None)


@formula(inside="gelu")
def gelu_tanh(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x**3)."""
    if x.kind == "f32":
        wide = e.convert(x, "f64")
        u_wide = wide * e.fma(wide * wide, GELU_CUBIC[0], GELU_SCALE[0])
        u = e.convert(u_wide, "f32")
        return _times_sigmoid(e, x, u, e.convert(u_wide - e.convert(u, "f64"), "f32"))
    cubic = product(e, exact_product(e, x, x), constant(e, x.kind, GELU_CUBIC))
    scale = constant(e, x.kind, GELU_SCALE)
    total = exact_sum(scale.head, cubic.head)
    u = product(
        e, DoubleDouble(x, e.constant(x.kind, 0.0)), DoubleDouble(total.head, total.tail + (cubic.tail + scale.tail))
    )
    return _times_sigmoid(e, x, u.head, u.tail)


@formula
def log_sigmoid(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log(sigmoid(x)) = min(x, 0) - log(1 + e**-|x|)."""
    return e.smallest(x, 0.0) - log1p(e, exp(e, -e.abs(x)))


@formula
def softplus(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log(1 + e**x) = max(x, 0) + log(1 + e**-|x|)."""
    return e.largest(x, 0.0) + log1p(e, exp(e, -e.abs(x)))


def _times_sigmoid(e: FormulaEmitter, x: VectorValue, u: VectorValue, tail: VectorValue | None) -> VectorValue:
    """Write x sigmoid(u + tail), of one sign; below 0, 2**n comes last, so that subnormal results are rounded once."""
    least, below = _LEAST[x.kind], u < 0.0
    if tail is not None:
        tail = e.select(e.abs(u) < -least, e.select(below, tail, -tail), 0.0)
    n, excess, whole = exp_parts(e, e.largest(-e.abs(u), least), tail)
    growth = excess + 1.0
    ratio = e.select(below, e.largest(x, least) * growth, x) / (scaled(e, growth, n, whole) + 1.0)
    return e.select(x.equals(-INFINITY), NAN, scaled(e, ratio, e.select(below, n, 0), e.select(below, whole, 0.0)))
