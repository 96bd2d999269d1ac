"""Rounding to whole numbers, signs and neighbours, by bits and by sums that leave no fraction."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import float_format, truncated
from dy2st.runtime.backends.cpu.libm.core.registry import formula


@formula(exact=True, inside="scalar_pow")
def trunc(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x without its fraction."""
    return truncated(e, x)


@formula(exact=True, inside="scalar_round")
def rint(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the nearest whole number, the even one of two."""
    a, limit = e.abs(x), 2.0 ** float_format(x.kind).mantissa_bits
    return e.copysign(e.select(a < limit, e.rounded(a + limit) - limit, a), x)


@formula(exact=True)
def nextafter(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> VectorValue:
    """Write the neighbour of x in the direction of y: the integer of its bits one more or less."""
    bits = e.bits(x)
    outward = (x < y) ^ (bits < 0)
    moved = e.floats(bits + e.select(outward, e.constant(bits.kind, 1), -1))
    least = e.copysign(2.0 ** float_format(x.kind).least_exponent, y)
    moved = e.select(x.equals(0.0), least, moved)
    return e.select(x.equals(y), y, e.select(x.is_nan | y.is_nan, x + y, moved))
