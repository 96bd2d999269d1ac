"""Rounding to whole numbers, signs and neighbours, by bits and by sums that leave no fraction."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.emitter import Emitter, Lanes
from dy2st.runtime.backends.cpu.libm.core.float_bits import floored, form, truncated


def floor(e: Emitter, x: Lanes) -> Lanes:
    """Write the largest whole number that is not above x."""
    return floored(e, x)


def ceil(e: Emitter, x: Lanes) -> Lanes:
    """Write the smallest whole number that is not below x."""
    return -floored(e, -x)


def trunc(e: Emitter, x: Lanes) -> Lanes:
    """Write x without its fraction."""
    return truncated(e, x)


def rint(e: Emitter, x: Lanes) -> Lanes:
    """Write the nearest whole number, the even one of two."""
    a, limit = e.abs(x), 2.0 ** form(x.kind).mantissa_bits
    return e.copysign(e.select(a < limit, e.rounded(a + limit) - limit, a), x)


def round(e: Emitter, x: Lanes) -> Lanes:
    """Write the nearest whole number, of two the one farther from 0 (as the op `round`)."""
    whole = truncated(e, x)
    return e.select(e.abs(x - whole) >= 0.5, whole + e.copysign(1.0, x), whole)


def sign(e: Emitter, x: Lanes) -> Lanes:
    """Write -1, 0 or 1; NaN where x is."""
    unit = e.select(e.abs(x) > 0.0, e.copysign(1.0, x), 0.0)
    return e.select(x.is_nan, x, unit)


def nextafter(e: Emitter, x: Lanes, y: Lanes) -> Lanes:
    """Write the neighbour of x in the direction of y: the integer of its bits one more or less."""
    bits = e.bits(x)
    outward = (x < y) ^ (bits < 0)
    moved = e.floats(bits + e.select(outward, e.constant(bits.kind, 1), -1))
    least = e.copysign(2.0 ** form(x.kind).least_exponent, y)
    moved = e.select(x.equals(0.0), least, moved)
    return e.select(x.equals(y), y, e.select(x.is_nan | y.is_nan, x + y, moved))
