"""e**x and its kin, by x = n log 2 + r with |r| <= log(2) / 2 and e**x = 2**n e**r.

log 2 is taken off in two parts, of which the first has so few bits that n times it is exact (W. J. Cody and W. Waite,
"Software Manual for the Elementary Functions", 1980); e**r is 1 + r + r**2 times a minimax polynomial.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dy2st.runtime.backends.cpu.libm.core.coefficients import EXP_F32, EXP_F64, LOG_2_F32, LOG_2_F64
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import float_format, rounded_whole
from dy2st.runtime.backends.cpu.libm.core.ldexp import power_of_two, scaled
from dy2st.runtime.backends.cpu.libm.core.registry import formula

_LOG_2 = {"f32": LOG_2_F32, "f64": LOG_2_F64}
_EXP = {"f32": EXP_F32, "f64": EXP_F64}
# where e**x is infinite above, and 0 below, to rounding; both with room to spare
LEAST_ARGUMENT = {"f32": -104.5, "f64": -746.0}
LARGEST_ARGUMENT = {"f32": 89.0, "f64": 710.0}


class ExpParts(NamedTuple):
    """e**x = 2**n (1 + excess)."""

    n: VectorValue
    excess: VectorValue
    whole: VectorValue
    """n as floats."""


@formula
def exp(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write e**x."""
    low, high = LEAST_ARGUMENT[x.kind], LARGEST_ARGUMENT[x.kind]
    parts = exp_parts(e, e.smallest(e.largest(x, low), high))
    return scaled(e, parts.excess + 1.0, parts.n, parts.whole)


@formula
def exp2(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write 2**x."""
    f = float_format(x.kind)
    x = e.smallest(e.largest(x, float(f.least_exponent - 1)), float(f.bias + 1))
    whole, n = rounded_whole(e, x)
    return scaled(e, excess(e, (x - whole) * math.log(2)) + 1.0, n, whole)


@formula
def expm1(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write e**x - 1 = 2**n excess + (2**n - 1), halved against overflow, with the sign of x."""
    f = float_format(x.kind)
    low = -(f.precision + 2) * math.log(2)
    parts = exp_parts(e, e.smallest(e.largest(x, low), LARGEST_ARGUMENT[x.kind]))
    half = power_of_two(e, parts.n - 1)
    total = e.fma(half, parts.excess, half - 0.5)
    return e.copysign(total + total, x)


def exp_parts(e: FormulaEmitter, x: VectorValue, tail: VectorValue | None = None) -> ExpParts:
    """Write e**(x + tail) in parts, of an x within the limits and a tail that is small against 1."""
    log_2, log_2_rest = _LOG_2[x.kind]
    whole, n = rounded_whole(e, x * (1 / math.log(2)))
    r = e.fma(whole, -log_2_rest, e.fma(whole, -log_2, x))
    return ExpParts(n, excess(e, r if tail is None else r + tail), whole)


def excess(e: FormulaEmitter, r: VectorValue) -> VectorValue:
    """Write e**r - 1 for |r| <= log(2) / 2."""
    return e.fma(r * r, e.polynomial(r, _EXP[r.kind]), r)
