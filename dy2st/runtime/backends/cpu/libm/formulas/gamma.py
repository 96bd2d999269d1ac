"""The logarithm of |Gamma| and its derivative, by the recurrences and series of `dy2st/ops/elementwise/gamma.py`.

float32 is computed in float64. Below 0 the error is small against 1 where the result is near a zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dy2st.ops.elementwise.gamma import BERNOULLI, DIGAMMA_AT_ROOT, DIGAMMA_ROOT, LARGE, LGAMMA_AT_1, LGAMMA_AT_2
from dy2st.runtime.backends.cpu.libm.core.double_double import exact_product, exact_sum
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY, NAN, floored
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.formulas.log import log
from dy2st.runtime.backends.cpu.libm.formulas.trigonometric import sin, tan


@formula
def lgamma(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log |Gamma(x)|; infinite at 0, -1, -2, ... and at both infinities."""
    if x.kind == "f32":
        return e.convert(lgamma(e, e.convert(x, "f64")), "f32")
    below = x < 0.0
    result = [_lgamma_positive(e, e.select(below, 1.0 - x, x))]

    def reflected(found: Sequence[VectorValue]) -> Sequence[VectorValue]:
        sine = e.abs(sin(e, _fraction(e, x) * math.pi))
        return [e.select(below, log(e, math.pi / sine) - found[0], found[0])]

    (value,) = e.where_rare(below, result, reflected)
    return e.select(e.abs(x).equals(INFINITY), INFINITY, value)


@formula
def digamma(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the derivative of lgamma; NaN at -1, -2, ..., an infinity of the sign of -x at 0."""
    if x.kind == "f32":
        return e.convert(digamma(e, e.convert(x, "f64")), "f32")
    below = x < 0.0
    result = [_digamma_positive(e, e.select(below, 1.0 - x, x))]

    def reflected(found: Sequence[VectorValue]) -> Sequence[VectorValue]:
        fraction = _fraction(e, x)
        value = found[0] - math.pi / tan(e, fraction * math.pi)
        return [e.select(below, e.select(fraction.equals(0.0), NAN, value), found[0])]

    (value,) = e.where_rare(below, result, reflected)
    return e.select(x.equals(0.0), e.copysign(INFINITY, -x), value)


def _fraction(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x less the nearest whole number."""
    return x - floored(e, x + 0.5)


def _lgamma_positive(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    y = e.smallest(e.largest(x, 0.5), LARGE)
    factor = e.constant("f64", 1.0)
    for _ in range(8):
        above = y > 2.5
        y = e.select(above, y - 1.0, y)
        factor = e.select(above, factor * y, factor)
    low = y < 1.5
    z = e.select(low, y - 1.0, y - 2.0)
    ratio = e.select(low, e.polynomial(z + z, LGAMMA_AT_1), e.polynomial(z + z, LGAMMA_AT_2))
    near = e.fma(z, ratio, log(e, factor))
    tiny = e.smallest(x, 0.5)
    near = e.select(x < 0.5, e.fma(tiny, e.polynomial(tiny + tiny, LGAMMA_AT_1), -log(e, tiny)), near)
    far = x >= LARGE

    def stirling(found: Sequence[VectorValue]) -> Sequence[VectorValue]:
        size = e.largest(x, LARGE)
        inverse = 1.0 / size
        series = tuple(BERNOULLI[k] / ((2 * k + 1) * (2 * k + 2)) for k in range(8))
        rest = e.polynomial(inverse * inverse, series) * inverse + (0.5 * math.log(2 * math.pi) - 0.5)
        shifted = exact_sum(log(e, size), e.constant("f64", -1.0))
        main = exact_product(e, size - 0.5, shifted.head)
        tail = e.fma(size, shifted.tail, main.tail)
        value = e.select(main.head < INFINITY, main.head + (tail + rest), main.head)
        return [e.select(far, value, found[0])]

    (value,) = e.where_rare(far, [near], stirling)
    return value


def _digamma_positive(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    y = e.smallest(e.largest(x, 0.0), LARGE)
    total = e.select(y < 1.0, -1.0 / y, 0.0)
    y = e.select(y < 1.0, y + 1.0, y)
    for _ in range(8):
        above = y > 2.0
        y = e.select(above, y - 1.0, y)
        total = e.select(above, total + 1.0 / y, total)
    offset = (y - DIGAMMA_ROOT[0]) - DIGAMMA_ROOT[1]
    near = e.fma(offset, e.polynomial(y + y - 3.0, DIGAMMA_AT_ROOT), total)
    far = x >= LARGE

    def asymptotic(found: Sequence[VectorValue]) -> Sequence[VectorValue]:
        size = e.largest(x, LARGE)
        inverse = 1.0 / size
        series = tuple(BERNOULLI[k] / (2 * k + 2) for k in range(8))
        square = inverse * inverse
        return [e.select(far, log(e, size) - e.fma(square, e.polynomial(square, series), inverse * 0.5), found[0])]

    (value,) = e.where_rare(far, [near], asymptotic)
    return value
