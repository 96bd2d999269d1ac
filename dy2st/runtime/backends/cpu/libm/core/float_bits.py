"""How floats are laid out, and what follows from it: whole numbers, exponents and parts of numbers."""

from __future__ import annotations

from dy2st.records import record
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue


@record(frozen=True)
class FloatFormat:
    """The layout of a binary floating-point kind."""

    mantissa_bits: int
    bias: int

    @property
    def precision(self) -> int:
        """The significant bits, the hidden one included."""
        return self.mantissa_bits + 1

    @property
    def least_exponent(self) -> int:
        """The exponent of the least positive subnormal number."""
        return 1 - self.bias - self.mantissa_bits

    @property
    def smallest_normal(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def shifter(self) -> float:
        """The number that leaves no fraction in a sum: 1.5 times 2 to the mantissa bits."""
        return 1.5 * 2.0**self.mantissa_bits


_FORMS = {"f32": FloatFormat(23, 127), "f64": FloatFormat(52, 1023)}
INFINITY, NAN = float("inf"), float("nan")


def float_format(kind: str) -> FloatFormat:
    """Return the layout of "f32" or "f64"."""
    return _FORMS[kind]


def rounded_whole(e: FormulaEmitter, x: VectorValue) -> tuple[VectorValue, VectorValue]:
    """Write the nearest whole number of a small x (|x| < 2**mantissa_bits / 2), as floats and as integers."""
    shifter = float_format(x.kind).shifter
    shifted = e.rounded(x + shifter)
    return shifted - shifter, e.bits(shifted) - e.bits(e.constant(x.kind, shifter))


def split_at_root_half(e: FormulaEmitter, x: VectorValue) -> tuple[VectorValue, VectorValue]:
    """Write positive normal x as m 2**n with sqrt(1/2) <= m < sqrt(2); n as integers."""
    f = float_format(x.kind)
    root_half = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}[x.kind]
    bits = e.bits(x)
    n = (bits - root_half) >> f.mantissa_bits
    return e.floats(bits - (n << f.mantissa_bits)), n


def whole_to_float(e: FormulaEmitter, n: VectorValue) -> VectorValue:
    """Write small integers as floats, without a conversion instruction (which 64-bit integers lack before AVX-512)."""
    kind = "f" + n.kind[1:]
    shifter = e.constant(kind, float_format(kind).shifter)
    return e.floats(n + e.bits(shifter)) - shifter


def is_whole(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Tell where x has no fraction; true for infinities."""
    a, limit = e.abs(x), 2.0 ** float_format(x.kind).mantissa_bits
    return (e.rounded(a + limit) - limit).equals(a) | (a >= limit)


def truncated(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write x without its fraction, with its sign; NaN and infinities as they are."""
    a, limit = e.abs(x), 2.0 ** float_format(x.kind).mantissa_bits
    near = e.rounded(a + limit) - limit
    near = e.select(near > a, near - 1.0, near)
    return e.copysign(e.select(a < limit, near, a), x)


def floored(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write the largest whole number that is not above x, with the sign of x where that is 0."""
    whole = truncated(e, x)
    return e.select(whole > x, whole - 1.0, whole)
