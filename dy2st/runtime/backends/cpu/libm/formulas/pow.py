"""x**y = 2**(y log2 x), roots and reciprocals.

float32 takes y log2 x in float64; float64 takes it in two parts (double_double.py), since its error is multiplied by up
to 1,075: log2 x = n + (2 / log 2) (s + s**3 / 3 + s**5 Q(s**2)), s = (m - 1) / (m + 1).
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.coefficients import (
    POW_SCALE,
    POW_TAIL_F64,
    POW_THIRD,
    POW_WIDE_EXP2_F64,
    POW_WIDE_LOG2_F64,
)
from dy2st.runtime.backends.cpu.libm.core.double_double import (
    DoubleDouble,
    constant,
    exact_product,
    exact_sum,
    fast_sum,
    product,
)
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import (
    INFINITY,
    NAN,
    float_format,
    is_whole,
    rounded_whole,
    split_at_root_half,
    whole_to_float,
)
from dy2st.runtime.backends.cpu.libm.core.ldexp import power_of_two, scaled
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.formulas.exp import excess

_LOG_2 = 0.6931471805599453


@formula
def pow(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> VectorValue:
    """Write x**y with the special values of IEEE 754 and C."""
    a = e.abs(x)
    size = _pow_in_f64(e, a, y) if x.kind == "f32" else _pow_in_two_parts(e, a, y)
    whole, half_whole = is_whole(e, y), is_whole(e, y * 0.5)
    odd = whole & e.invert(half_whole)
    negative = e.bits(x) < 0
    result = e.select(negative & odd, -size, size)
    result = e.select(((x < 0.0) & e.invert(whole)) & (a < INFINITY), NAN, result)
    one = y.equals(0.0) | x.equals(1.0) | (a.equals(1.0) & e.abs(y).equals(INFINITY))
    return e.select(one, 1.0, result)


@formula
def rsqrt(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write 1 / sqrt(x)."""
    return 1.0 / e.sqrt(x)


@formula
def hypot(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> VectorValue:
    """Write sqrt(x**2 + y**2), of numbers scaled so that no square overflows or vanishes; the squares in two parts."""
    a, b = e.abs(x), e.abs(y)
    infinite = a.equals(INFINITY) | b.equals(INFINITY)
    if x.kind == "f32":
        wide = [e.convert(v, "f64") for v in (a, b)]
        return e.select(infinite, INFINITY, e.convert(e.sqrt(wide[0] * wide[0] + wide[1] * wide[1]), "f32"))
    top = e.select(a > b, a, b)
    scale = e.select(top > 2.0**500, 2.0**-600, e.select(top < 2.0**-400, 2.0**600, e.constant(x.kind, 1.0)))
    a, b = a * scale, b * scale
    first, second = exact_product(e, a, a), exact_product(e, b, b)
    total = exact_sum(first.head, second.head)
    root = e.sqrt(total.head)
    back = exact_product(e, root, root)
    left = ((total.head - back.head) - back.tail) + (total.tail + (first.tail + second.tail))
    rest = e.select(total.head > 0.0, left / (root + root), 0.0)
    return e.select(infinite, INFINITY, (root + rest) / scale)


def _pow_in_f64(e: FormulaEmitter, a: VectorValue, y: VectorValue) -> VectorValue:
    """Write a**y for float32 a >= 0 by float64."""
    a, y = e.convert(a, "f64"), e.convert(y, "f64")
    m, n = split_at_root_half(e, a)
    f = m - 1.0
    log2 = e.fma(f, e.polynomial(f, POW_WIDE_LOG2_F64), whole_to_float(e, n))
    t = e.smallest(e.largest(y * _log_edges(e, a, log2), -160.0), 130.0)
    whole, n = rounded_whole(e, t)
    return e.convert(e.polynomial(t - whole, POW_WIDE_EXP2_F64) * power_of_two(e, n), "f32")


def _pow_in_two_parts(e: FormulaEmitter, a: VectorValue, y: VectorValue) -> VectorValue:
    """Write a**y for float64 a >= 0."""
    f = float_format(a.kind)
    tiny = a < f.smallest_normal
    m, n = split_at_root_half(e, e.select(tiny, a * 2.0**f.precision, a))
    count = whole_to_float(e, n)
    log2 = _log2_in_two_parts(e, m, e.select(tiny, count - float(f.precision), count))
    head = _log_edges(e, a, log2.head)
    exact = exact_product(e, y, head)
    near = e.abs(exact.head) < 2000.0
    low = e.select(near, e.fma(y, log2.tail, exact.tail), 0.0)
    t = e.smallest(e.largest(exact.head, -1080.0), 1030.0)
    whole, n = rounded_whole(e, t)
    return scaled(e, excess(e, ((t - whole) + low) * _LOG_2) + 1.0, n, whole)


def _log_edges(e: FormulaEmitter, a: VectorValue, log: VectorValue) -> VectorValue:
    """Write log(a) with -inf at 0, and infinity and NaN as they are."""
    return e.select(a.equals(0.0), -INFINITY, e.select(a < INFINITY, log, a))


def _log2_in_two_parts(e: FormulaEmitter, m: VectorValue, n: VectorValue) -> DoubleDouble:
    """Write n + log2(m) for sqrt(1/2) <= m < sqrt(2)."""
    above, below = m - 1.0, exact_sum(m, e.constant(m.kind, 1.0))
    inverse = 1.0 / below.head
    s_head = above * inverse
    back = exact_product(e, s_head, below.head)
    s = DoubleDouble(s_head, (((above - back.head) - back.tail) - s_head * below.tail) * inverse)
    z = product(e, s, s)
    third = product(e, z, constant(e, m.kind, POW_THIRD))
    rest = e.fma(z.head * z.head, e.polynomial(z.head, POW_TAIL_F64), third.tail)
    factor = fast_sum(e.constant(m.kind, 1.0), third.head)
    factor = DoubleDouble(factor.head, factor.tail + rest)
    logarithm = product(e, product(e, s, factor), constant(e, m.kind, POW_SCALE))
    total = fast_sum(n, logarithm.head)
    return fast_sum(total.head, total.tail + logarithm.tail)
