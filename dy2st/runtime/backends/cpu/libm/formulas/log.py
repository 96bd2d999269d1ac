"""Logarithms, by x = m 2**n with sqrt(1/2) <= m < sqrt(2) and log x = n log 2 + log m.

float32 takes log(1 + f) = f - f**2 / 2 + f**3 P(f); float64 the series of the area tangent in s = f / (2 + f), where
log(1 + f) = f - s (f - z Q(z)), z = s**2. P and Q are minimax polynomials.
"""

from __future__ import annotations

import math

from dy2st.runtime.backends.cpu.libm.core.coefficients import (
    LOG10_2_F32,
    LOG10_2_F64,
    LOG_2_F32,
    LOG_2_F64,
    LOG_F32,
    LOG_RATIO_F64,
)
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import (
    INFINITY,
    NAN,
    float_format,
    split_at_root_half,
    whole_to_float,
)
from dy2st.runtime.backends.cpu.libm.core.registry import formula

_LOG_2 = {"f32": LOG_2_F32, "f64": LOG_2_F64}
_LOG2_E = 14426950408889634073599246810018921374
_LOG10_E = 4342944819032518276511289189166050823
_UNIT = 10**37
"""What the two are multiples of, that each has more digits than a float."""


@formula
def log(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the natural logarithm."""
    f, n = _split(e, x)
    head, tail = _LOG_2[x.kind]
    return _edges(e, x, e.fma(n, head, f + e.fma(n, tail, log1p_rest(e, f))))


@formula
def log2(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the logarithm to base 2; whole for powers of two."""
    return _to_base(e, x, _LOG2_E, 1.0, 0.0)


@formula
def log10(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the logarithm to base 10."""
    return _to_base(e, x, _LOG10_E, *{"f32": LOG10_2_F32, "f64": LOG10_2_F64}[x.kind])


@formula
def log1p(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write log(1 + x), with the sign of x: 1 + x = m 2**n, and m - 1 = 2**-n x + (2**-n - 1) loses nothing."""
    form_ = float_format(x.kind)
    u = x + 1.0
    m, n = split_at_root_half(e, u)
    inverse = e.floats((form_.bias - n) << form_.mantissa_bits)
    far = n > form_.precision  # here 1 + x is x, to rounding
    f = e.select(far, m - 1.0, e.fma(inverse, x, inverse - 1.0))
    count = whole_to_float(e, n)
    head, tail = _LOG_2[x.kind]
    total = e.fma(count, head, f + e.fma(count, tail, log1p_rest(e, f)))
    return e.copysign(_edges(e, u, total), x)


def log1p_rest(e: FormulaEmitter, f: VectorValue) -> VectorValue:
    """Write log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2)."""
    square = f * f
    if f.kind == "f32":
        return e.fma(f * square, e.polynomial(f, LOG_F32), square * -0.5)
    s = f / (f + 2.0)
    z = s * s
    half = square * 0.5
    return e.fma(s, e.fma(z, e.polynomial(z, LOG_RATIO_F64), half), -half)


def _split(e: FormulaEmitter, x: VectorValue) -> tuple[VectorValue, VectorValue]:
    """Write the f and n (floats) of x = (1 + f) 2**n, subnormal numbers included."""
    f = float_format(x.kind)
    tiny = x < f.smallest_normal
    m, n = split_at_root_half(e, e.select(tiny, x * 2.0**f.precision, x))
    count = whole_to_float(e, n)
    return m - 1.0, e.select(tiny, count - float(f.precision), count)


def _to_base(e: FormulaEmitter, x: VectorValue, scale: int, head: float, tail: float) -> VectorValue:
    """Write log(x) scale / _UNIT = n (head + tail) + log(m) scale / _UNIT; f times that goes in two parts."""
    f, n = _split(e, x)
    kind = x.kind
    mask = {"f32": -0x1000, "f64": -0x8000000}[kind]
    f_head = e.floats(e.bits(f) & mask)
    rest = (f - f_head) + log1p_rest(e, f)
    scale_head = _leading(scale / _UNIT, 12 if kind == "f32" else 26)
    numerator, denominator = scale_head.as_integer_ratio()
    scale_tail = (scale * denominator - numerator * _UNIT) / (denominator * _UNIT)  # of whole numbers: rounded once
    low = e.fma(f_head, scale_tail, rest * (scale / _UNIT))
    low = e.fma(n, tail, low) if tail else low
    high = f_head * scale_head
    whole = n if head == 1.0 else n * head
    total = whole + high
    return _edges(e, x, total + ((whole - total) + high + low))


def _leading(number: float, bits: int) -> float:
    """Return the leading bits of a number."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.floor(mantissa * 2.0**bits), exponent - bits)


def _edges(e: FormulaEmitter, x: VectorValue, result: VectorValue) -> VectorValue:
    """Write the result with -inf at 0, NaN below, and infinity and NaN as they are."""
    result = e.select(x < INFINITY, result, x)
    result = e.select(x > 0.0, result, NAN)
    return e.select(x.equals(0.0), -INFINITY, result)
