"""Modified Bessel functions of the first kind, times e ** -|x|, by the Chebyshev series of
`dy2st/ops/elementwise/bessel.py`.

float32 is computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ops.elementwise.bessel import FAR_0, FAR_1, NEAR_0, NEAR_1
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.registry import formula


@formula
def i0e(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the function of order 0."""
    if x.kind == "f32":
        return e.convert(i0e(e, e.convert(x, "f64")), "f32")
    size = e.abs(x)
    inside = e.smallest(size, 8.0)
    return _joined(e, size, _series(e, NEAR_0, inside * 0.25 - 1.0) / (inside * 0.5 + 1.0), FAR_0)


@formula
def i1e(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the function of order 1."""
    if x.kind == "f32":
        return e.convert(i1e(e, e.convert(x, "f64")), "f32")
    size = e.abs(x)
    inside = e.smallest(size, 8.0)
    square = e.fma(inside, e.fma(inside, 0.25, 1.0), 1.0)
    near = _series(e, NEAR_1, inside * 0.25 - 1.0) * inside / square
    return e.copysign(_joined(e, size, near, FAR_1), x)


def _joined(e: FormulaEmitter, size: VectorValue, near: VectorValue, coefficients: Sequence[float]) -> VectorValue:
    """Write the value up to 8, or the series beyond."""
    far = size > 8.0

    def beyond(found: Sequence[VectorValue]) -> Sequence[VectorValue]:
        large = e.largest(size, 8.0)
        value = _series(e, coefficients, 16.0 / large - 1.0) / e.sqrt(large)
        return [e.select(far, value, found[0])]

    (value,) = e.where_rare(far, [near], beyond)
    return value


def _series(e: FormulaEmitter, coefficients: Sequence[float], t: VectorValue) -> VectorValue:
    """Write a Chebyshev series by Clenshaw's recurrence."""
    later, latest = e.constant("f64", 0.0), e.constant("f64", 0.0)
    double = t + t
    for coefficient in reversed(coefficients[1:]):
        later, latest = e.fma(double, later, coefficient - latest), later
    return e.fma(t, later, coefficients[0] - latest)
