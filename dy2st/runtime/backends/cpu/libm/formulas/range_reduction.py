"""x as n pi / 2 + r with |r| <= pi / 4, for the trigonometric functions.

Small x loses n times pi / 2 in parts, the first of which are exact (W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions", 1980). For large x, `far` multiplies the integer mantissa by those bits of 2 / pi that matter for
the fraction (M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dy2st.runtime.backends.cpu.libm.core.coefficients import HALF_PI_REDUCTION, TWO_OVER_PI
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.libm.core.float_bits import rounded_whole
from dy2st.runtime.backends.cpu.libm.core.scalar_loop import each_lane
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

# below these, n is exact in `near`
_NEAR = {"f32": 2.0**17, "f64": 2.0**20}


class ReducedArgument(NamedTuple):
    """x = n pi / 2 + r + rest; only the two last bits of n (integers) count; float32 and double-double need none."""

    n: VectorValue
    r: VectorValue
    rest: VectorValue | None


def range_reduced(e: FormulaEmitter, x: VectorValue) -> ReducedArgument:
    """Write x modulo pi / 2."""
    whole, n = rounded_whole(e, x * (2 / math.pi))
    far = e.compare("lt", _NEAR[x.kind], e.abs(x))
    first, second, third = HALF_PI_REDUCTION
    if x.kind == "f32":
        # float64 holds what float32 would need three parts for
        wide, count = e.convert(x, "f64"), e.convert(whole, "f64")
        r = e.convert(e.fma(count, -(second + third), e.fma(count, -first, wide)), "f32")
        n, r = e.where_rare(far, [n, r], lambda near: _far_f32(e, x, far, near))
        return ReducedArgument(n, r, None)
    high = e.fma(whole, -first, x)
    r = e.fma(whole, -second, high)
    rest = e.fma(whole, -third, e.fma(whole, -second, high - r))
    total = r + rest
    rest = (r - total) + rest
    n, r, rest = e.where_rare(far, [n, total, rest], lambda near: _far_f64(e, x, far, near))
    return ReducedArgument(n, r + rest, None) if e.in_two_parts else ReducedArgument(n, r, rest)


def _far_f32(e: FormulaEmitter, x: VectorValue, far: VectorValue, near: Sequence[VectorValue]) -> list[VectorValue]:
    n, r = near
    wide = e.convert(x, "f64")
    n_far, r_far = (each_lane(e, part, wide) for part in (_N, _R))
    count = rounded_whole(e, e.convert(n_far, "f32"))[1]
    return [e.select(far, count, n), e.select(far, e.convert(r_far, "f32"), r)]


def _far_f64(e: FormulaEmitter, x: VectorValue, far: VectorValue, near: Sequence[VectorValue]) -> list[VectorValue]:
    n, r, rest = near
    n_far, r_far, rest_far = (each_lane(e, part, x) for part in (_N, _R, _REST))
    count = rounded_whole(e, n_far)[1]
    return [e.select(far, count, n), e.select(far, r_far, r), e.select(far, rest_far, rest)]


def _part(part: str, index: int) -> Definition:
    """Return the scalar function that gives one part of `_FAR`'s result."""
    name = f"dy2st.far.{part}"
    text = f"""define internal double @{name}(double %x) cold nounwind {{
  %all = call [3 x double] @dy2st.far(double %x)
  %y = extractvalue [3 x double] %all, {index}
  ret double %y
}}"""
    return Definition(name, text, (_FAR,))


def _declared(symbol: str, signature: str) -> Definition:
    result, arguments = signature.split(" ", 1)
    return Definition(symbol, f"declare {result} @{symbol}{arguments}")


_BITS = Definition(
    "dy2st.two_over_pi",
    f"@dy2st.two_over_pi = internal constant [{len(TWO_OVER_PI)} x i8] "
    f'c"{"".join(f"{chr(92)}{byte:02X}" for byte in TWO_OVER_PI)}"',
)

# pi / 2 with 63 bits of fraction
_HALF_PI = sum(int(math.ldexp(part, 63)) for part in HALF_PI_REDUCTION)

# |x| = m 2**e. The bits of 2 / pi whose product with m 2**e is a multiple of 4 are left out; the next 192, less up to
# 7, are `window` and `below`. `turns` is then x 2 / pi modulo 4, with 126 bits of fraction. Its distance from a whole
# number is made a number of 64 significant bits and multiplied by pi / 2, which gives 53 + 53 bits.
_FAR = Definition(
    "dy2st.far",
    f"""define internal [3 x double] @dy2st.far(double %x) cold noinline nounwind {{
  %bits = bitcast double %x to i64
  %raw = lshr i64 %bits, 52
  %exponent = and i64 %raw, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %offset = sub i64 %exponent, {1075 + 2 - 40}
  %low = icmp slt i64 %offset, 0
  %start = select i1 %low, i64 0, i64 %offset
  %byte = lshr i64 %start, 3
  %shift = and i64 %start, 7
  %p = getelementptr i8, ptr @dy2st.two_over_pi, i64 %byte
  %q = getelementptr i8, ptr %p, i64 16
  %p_bytes = load i128, ptr %p, align 1
  %q_bytes = load i64, ptr %q, align 1
  %first = call i128 @llvm.bswap.i128(i128 %p_bytes)
  %next = call i64 @llvm.bswap.i64(i64 %q_bytes)
  %shift_wide = zext i64 %shift to i128
  %upper = shl i128 %first, %shift_wide
  %next_half = lshr i64 %next, 1
  %inverse = sub i64 63, %shift
  %entering = lshr i64 %next_half, %inverse
  %entering_wide = zext i64 %entering to i128
  %window = or i128 %upper, %entering_wide
  %below = shl i64 %next, %shift
  %m_wide = zext i64 %m to i128
  %below_wide = zext i64 %below to i128
  %carry_product = mul i128 %m_wide, %below_wide
  %carry = lshr i128 %carry_product, 64
  %main = mul i128 %m_wide, %window
  %turns = add i128 %main, %carry
  %rounded = add i128 %turns, {1 << 125}
  %whole = lshr i128 %rounded, 126
  %whole_part = shl i128 %whole, 126
  %rest = sub i128 %turns, %whole_part
  %negative = icmp slt i128 %rest, 0
  %minus = sub i128 0, %rest
  %size = select i1 %negative, i128 %minus, i128 %rest
  %zeros = call i128 @llvm.ctlz.i128(i128 %size, i1 false)
  %kept = and i128 %zeros, 127
  %normal = shl i128 %size, %kept
  %top = lshr i128 %normal, 64
  %product = mul i128 %top, {_HALF_PI}
  %high_wide = lshr i128 %product, 75
  %high = trunc i128 %high_wide to i64
  %low_wide = lshr i128 %product, 22
  %low_most = trunc i128 %low_wide to i64
  %low_bits = and i64 %low_most, 9007199254740991
  %high_float = sitofp i64 %high to double
  %low_float = sitofp i64 %low_bits to double
  %places = trunc i128 %kept to i64
  %scale_exponent = sub i64 {1023 - 50}, %places
  %rest_exponent = sub i64 {1023 - 103}, %places
  %x_negative = icmp slt i64 %bits, 0
  %flip = xor i1 %negative, %x_negative
  %sign = select i1 %flip, i64 {-(1 << 63)}, i64 0
  %scale_plain = shl i64 %scale_exponent, 52
  %rest_plain = shl i64 %rest_exponent, 52
  %scale_bits = or i64 %scale_plain, %sign
  %rest_bits = or i64 %rest_plain, %sign
  %scale = bitcast i64 %scale_bits to double
  %rest_scale = bitcast i64 %rest_bits to double
  %r = fmul double %high_float, %scale
  %r_rest = fmul double %low_float, %rest_scale
  %count = trunc i128 %whole to i64
  %count_minus = sub i64 0, %count
  %n = select i1 %x_negative, i64 %count_minus, i64 %count
  %n_float = sitofp i64 %n to double
  %with_n = insertvalue [3 x double] poison, double %n_float, 0
  %with_r = insertvalue [3 x double] %with_n, double %r, 1
  %all = insertvalue [3 x double] %with_r, double %r_rest, 2
  ret [3 x double] %all
}}""",
    (
        _BITS,
        _declared("llvm.bswap.i128", "i128 (i128)"),
        _declared("llvm.bswap.i64", "i64 (i64)"),
        _declared("llvm.ctlz.i128", "i128 (i128, i1 immarg)"),
    ),
)
_N, _R, _REST = (_part(part, i) for i, part in enumerate(("n", "r", "rest")))
