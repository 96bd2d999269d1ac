"""Remainders and whole quotients, exact for any two numbers, as NumPy's fmod, mod and floor_divide."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.libm.core.double_double import exact_product
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import INFINITY, NAN, float_format, floored, truncated
from dy2st.runtime.backends.cpu.libm.core.registry import formula
from dy2st.runtime.backends.cpu.libm.core.scalar_loop import each_lane
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

# where the product of quotient and divisor keeps its last bits
_SMALL = {"f32": 2.0**-96, "f64": 2.0**-960}


@formula(exact=True)
def fmod(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> VectorValue:
    """Write x - y trunc(x / y), with the sign of x."""
    a, b = e.abs(x), e.abs(y)
    quotient = a / b
    whole = truncated(e, quotient)
    back = exact_product(e, whole, b)
    rest = (a - back.head) - back.tail
    rest = e.select(rest < 0.0, rest + b, rest)
    rest = e.select(rest >= b, rest - b, rest)
    rest = e.select(a < b, a, rest)
    inexact = (quotient > 2.0 ** (float_format(x.kind).mantissa_bits - 2)) | (a < _SMALL[x.kind])
    far = (a >= b) & (b > 0.0) & inexact
    (rest,) = e.where_rare(far, [rest], lambda near: [e.select(far, _far(e, a, b), near[0])])
    defined = (a < INFINITY) & (b > 0.0)
    return e.select(defined, e.copysign(rest, x), NAN)


@formula(exact=True)
def mod(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> VectorValue:
    """Write x - y floor(x / y), with the sign of y."""
    rest = fmod(e, x, y)
    moved = e.select((y < 0.0) ^ (rest < 0.0), rest + y, rest)
    return e.select(rest.equals(0.0), e.copysign(0.0, y), moved)


@formula(exact=True)
def floordiv(e: FormulaEmitter, x: VectorValue, y: VectorValue) -> VectorValue:
    """Write floor(x / y): of the quotient that has no remainder, so that it is right where x / y rounds up."""
    rest = fmod(e, x, y)
    plain = x / y
    quotient = (x - rest) / y
    other = ((y < 0.0) ^ (rest < 0.0)) & e.invert(rest.equals(0.0))
    quotient = e.select(other, quotient - 1.0, quotient)
    whole = floored(e, quotient)
    whole = e.select(quotient - whole > 0.5, whole + 1.0, whole)
    whole = e.select(quotient.equals(0.0), e.copysign(0.0, plain), whole)
    return e.select(y.equals(0.0), plain, whole)


def _far(e: FormulaEmitter, a: VectorValue, b: VectorValue) -> VectorValue:
    """Write the remainder by integers, 11 bits of the quotient at a time."""
    if a.kind == "f64":
        return each_lane(e, _REMAINDER, a, b)
    return e.convert(each_lane(e, _REMAINDER, e.convert(a, "f64"), e.convert(b, "f64")), "f32")


# a = m 2**i, b = k 2**j with whole m and k: m 2**(i - j) modulo k, then that times 2**j in two exact steps.
_REMAINDER = Definition(
    "dy2st.remainder",
    """define internal double @dy2st.remainder(double %a, double %b) cold noinline nounwind {
entry:
  %a_bits = bitcast double %a to i64
  %b_bits = bitcast double %b to i64
  %a_raw = lshr i64 %a_bits, 52
  %b_raw = lshr i64 %b_bits, 52
  %a_fraction = and i64 %a_bits, 4503599627370495
  %b_fraction = and i64 %b_bits, 4503599627370495
  %a_normal = icmp ne i64 %a_raw, 0
  %b_normal = icmp ne i64 %b_raw, 0
  %a_hidden = select i1 %a_normal, i64 4503599627370496, i64 0
  %b_hidden = select i1 %b_normal, i64 4503599627370496, i64 0
  %a_exponent = select i1 %a_normal, i64 %a_raw, i64 1
  %b_exponent = select i1 %b_normal, i64 %b_raw, i64 1
  %m = or i64 %a_fraction, %a_hidden
  %k_any = or i64 %b_fraction, %b_hidden
  %k_zero = icmp eq i64 %k_any, 0
  %k = select i1 %k_zero, i64 1, i64 %k_any
  %m_first = urem i64 %m, %k
  %places = sub i64 %a_exponent, %b_exponent
  br label %test
test:
  %left = phi i64 [ %places, %entry ], [ %left_next, %step ]
  %rest = phi i64 [ %m_first, %entry ], [ %rest_next, %step ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %step, label %done
step:
  %few = icmp slt i64 %left, 11
  %count = select i1 %few, i64 %left, i64 11
  %shifted = shl i64 %rest, %count
  %rest_next = urem i64 %shifted, %k
  %left_next = sub i64 %left, %count
  br label %test
done:
  %number = sitofp i64 %rest to double
  %power = sub i64 %b_exponent, 1075
  %half = ashr i64 %power, 1
  %other = sub i64 %power, %half
  %half_biased = add i64 %half, 1023
  %other_biased = add i64 %other, 1023
  %half_bits = shl i64 %half_biased, 52
  %other_bits = shl i64 %other_biased, 52
  %half_scale = bitcast i64 %half_bits to double
  %other_scale = bitcast i64 %other_bits to double
  %once = fmul double %number, %half_scale
  %twice = fmul double %once, %other_scale
  ret double %twice
}""",
)
