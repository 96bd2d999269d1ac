"""Functions of float32 by pieces: a short polynomial for each, whose coefficients are picked in registers.

AVX-512 permutes 16 floats by one instruction, so that a register is a table of 16 entries. |x| is cut into pieces; the
number of its piece picks each coefficient of a polynomial in the distance from the middle of the piece. That is a dozen
instructions without e**x or a division. Beyond the last piece, which is rare, stands the formula that every target has.

Pieces of one width are cut by additions. Those of tanh, gelu and gelu_tanh are about as wide as a polynomial of one
degree allows: the exponent and the first bits of y = c + |x|, or c - |x|, are their number, so that their width doubles
where y does.

e**x is 2**n 2**(k/16) e**r with the power of 2 picked, so that r is small and three powers of it are enough.

The other pieces are of functions of |x| that go to 0: the share T of a linear unit x T(-x), so that it is max(x, 0) -
|x| T(|x|) and precise on both sides; or odd ones, by a polynomial without a constant about 0, which are 1 in the end.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from functools import partial

from dy2st.records import record
from dy2st.runtime.backends.cpu.libm.core import piecewise_coefficients as by_name
from dy2st.runtime.backends.cpu.libm.core.coefficients import LOG_2_F32
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue, literal
from dy2st.runtime.backends.cpu.libm.core.float_bits import float_format
from dy2st.runtime.backends.cpu.libm.core.ldexp import scaled_with_avx512
from dy2st.runtime.backends.cpu.libm.core.vectors import Parts, by_vectors
from dy2st.runtime.backends.cpu.libm.formulas.exp import LARGEST_ARGUMENT, LEAST_ARGUMENT
from dy2st.runtime.backends.cpu.libm.functions import function
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, called

PIECES = 16
LAST = PIECES - 0.75
"""How many widths |x| may be, with room for the rounding of the quotient."""
_PICK = "llvm.x86.avx512.permvar.sf.512"


@record(frozen=True)
class EvenPieces:
    """Pieces of one width, the first about 0."""

    width: float

    @property
    def end(self) -> float:
        """What |x| is to be below."""
        return LAST * self.width

    def cut(
        self, e: FormulaEmitter, a: VectorValue
    ) -> tuple[VectorValue, Callable[[Parts, Parts], Parts], VectorValue]:
        """Write numbers whose last bits are those of the pieces of a >= 0, and the distances from their middles."""
        shifter = float_format("f32").shifter
        if math.frexp(self.width)[0] == 0.5:  # additions are left to the parts of the CPU that do not multiply
            shifted = a + shifter * self.width
            return e.bits(shifted), _as_they_are, a - (shifted - shifter * self.width)
        shifted = e.fma(a, 1 / self.width, shifter)
        return e.bits(shifted), _as_they_are, e.fma(shifted - shifter, -self.width, a)


@record(frozen=True)
class BitPieces:
    """Pieces whose numbers are bits of y = start + sign |x|: `places` of them come behind."""

    start: float
    sign: float
    places: int
    end: float
    """What |x| is to be below."""
    middles: tuple[float, ...]

    def cut(
        self, e: FormulaEmitter, a: VectorValue
    ) -> tuple[VectorValue, Callable[[Parts, Parts], Parts], VectorValue]:
        """Write numbers whose last bits are those of the pieces of a >= 0, and a, from which the middles go."""
        y = self.start + a if self.sign > 0 else self.start - a

        def distances(pieces: Parts, parts: Parts) -> Parts:
            return [x - middle for x, middle in zip(parts, _picked(e, pieces, self.middles), strict=True)]

        return e.logical_shift(e.bits(y), self.places), distances, a


def _as_they_are(pieces: Parts, distances: Parts) -> Parts:
    return distances


@record(frozen=True)
class PolynomialTable:
    """The polynomials of the pieces: for each power from the lowest up, the coefficients of all pieces."""

    cut: EvenPieces | BitPieces
    columns: tuple[tuple[float, ...], ...]

    @property
    def end(self) -> float:
        """What |x| is to be below."""
        return self.cut.end


_NORMAL_TAIL = PolynomialTable(BitPieces(*by_name.NORMAL_TAIL_CUT, by_name.NORMAL_TAIL_MIDDLES), by_name.NORMAL_TAIL)
_CUBIC_TAIL = PolynomialTable(BitPieces(*by_name.CUBIC_TAIL_CUT, by_name.CUBIC_TAIL_MIDDLES), by_name.CUBIC_TAIL)
_LOGISTIC_TAIL = PolynomialTable(EvenPieces(by_name.LOGISTIC_TAIL_WIDTH), by_name.LOGISTIC_TAIL)
_SOFTPLUS_TAIL = PolynomialTable(EvenPieces(by_name.SOFTPLUS_TAIL_WIDTH), by_name.SOFTPLUS_TAIL)
_TANH = PolynomialTable(BitPieces(*by_name.TANH_CUT, by_name.TANH_MIDDLES), by_name.TANH)
_ERF = PolynomialTable(EvenPieces(by_name.ERF_WIDTH), by_name.ERF)


OfTail = Callable[[FormulaEmitter, VectorValue, VectorValue], VectorValue]
"""What makes a function of x and its tail."""


def _linear_unit(e: FormulaEmitter, x: VectorValue, tail: VectorValue) -> VectorValue:
    return e.fma(-e.abs(x), tail, e.largest(x, 0.0))


def _sigmoid(e: FormulaEmitter, x: VectorValue, tail: VectorValue) -> VectorValue:
    return e.select(x < 0.0, tail, 1.0 - tail)


def _softplus(e: FormulaEmitter, x: VectorValue, tail: VectorValue) -> VectorValue:
    return e.largest(x, 0.0) + tail


def _log_sigmoid(e: FormulaEmitter, x: VectorValue, tail: VectorValue) -> VectorValue:
    return e.smallest(x, 0.0) - tail


@functools.cache
def by_pieces(name: str, lanes: int) -> Definition:
    """Return the function `name` of float32, of any number of lanes, for a CPU with AVX-512."""
    symbol, e = f"dy2st.{name}.f32.{lanes}", FormulaEmitter(lanes)
    t, x = e.type("f32"), VectorValue(e, "f32", "%x")
    if lanes < PIECES:  # as in a whole vector
        whole = by_pieces(name, PIECES)
        result = by_vectors(e, PIECES, lambda parts: [e.call(whole, "f32", part) for part in parts], x)
    else:
        result = BY_PIECES[name](e, x)
    head = f"define internal {t} @{symbol}({t} %x) alwaysinline nounwind {{"
    return Definition(
        symbol, "\n".join([head, "entry:", *e.lines, f"  ret {t} {result.text}", "}"]), tuple(e.needs.values())
    )


def _exp(e: FormulaEmitter, x: VectorValue) -> VectorValue:
    """Write e**x."""
    (log_2, log_2_rest), shifter = LOG_2_F32, float_format("f32").shifter / PIECES
    x = e.smallest(e.largest(x, LEAST_ARGUMENT["f32"]), LARGEST_ARGUMENT["f32"])
    shifted = e.fma(x, 1 / math.log(2), shifter)  # its last bits are k
    n = shifted - shifter  # and k / 16, which the last instruction takes off
    r = e.fma(n, -log_2_rest, e.fma(n, -log_2, x))
    powers = [2 ** (k / PIECES) for k in range(PIECES)]
    power = by_vectors(e, PIECES, lambda pieces: _picked(e, pieces, powers), e.bits(shifted))
    growth = e.polynomial(r, (1.0, *by_name.EXP))
    return e.call(scaled_with_avx512("f32", e.lanes), "f32", e.fma(power * r, growth, power), e.bits(shifted), n)


def _odd(e: FormulaEmitter, x: VectorValue, table: PolynomialTable) -> VectorValue:
    """Write a function with f(-x) = -f(x) that stays where the pieces end."""
    return e.copysign(_value(e, e.smallest(e.abs(x), table.end), table), x)


def _by_tail(e: FormulaEmitter, x: VectorValue, name: str, table: PolynomialTable, made: OfTail) -> VectorValue:
    """Write a function that a tail makes, and what every target has where |x| is beyond the pieces."""
    a = e.abs(x)

    def one(x: VectorValue, size: VectorValue, near: VectorValue) -> VectorValue:
        far, plain = size >= table.end, _everywhere(name, PIECES)
        return e.where_rare(far, [near], lambda near: [e.select(far, e.call(plain, "f32", x), near[0])])[0]

    def all_of_them(numbers: Parts, sizes: Parts, near: Parts) -> Parts:
        def each() -> Parts:
            return [one(*three) for three in zip(numbers, sizes, near, strict=True)]

        # one comparison for all: it takes the place of a product, but the larger of two integers does not
        return each() if len(near) == 1 else e.where_rare(_some_reach(e, sizes, table.end), near, lambda _: each())

    return by_vectors(e, PIECES, all_of_them, x, a, made(e, x, _value(e, a, table)))


def _some_reach(e: FormulaEmitter, sizes: Parts, end: float) -> VectorValue:
    """Write where the largest of numbers >= 0, lane by lane, is `end` or more; a NaN is more."""
    bits = [e.bits(size) for size in sizes]
    while len(bits) > 1:
        bits = [e.select(a > b, a, b) for a, b in zip(bits[::2], bits[1::2], strict=True)]
    return bits[0] >= e.bits(e.constant("f32", end))


def _everywhere(name: str, lanes: int) -> Definition:
    """Return the function that every target has, under a name of its own, as one that is called."""
    plain = function(name, "f32", lanes)
    symbol = f"dy2st.far.{name}.f32.{lanes}"
    return called(Definition(symbol, plain.text.replace(f"@{plain.name}(", f"@{symbol}("), plain.needs))


def _value(e: FormulaEmitter, a: VectorValue, table: PolynomialTable) -> VectorValue:
    """Write the polynomial of the piece of a >= 0."""
    numbers, distances_of, rest = table.cut.cut(e, a)

    def polynomial(pieces: Parts, rests: Parts) -> Parts:
        distances = distances_of(pieces, rests)
        totals = _picked(e, pieces, table.columns[-1])
        for column in table.columns[-2::-1]:
            picked = _picked(e, pieces, column)
            totals = [e.fma(*three) for three in zip(totals, distances, picked, strict=True)]
        return totals

    return by_vectors(e, PIECES, polynomial, numbers, rest)


def _picked(e: FormulaEmitter, pieces: Parts, column: Sequence[float]) -> Parts:
    """Write the numbers of the column that the last four bits of each lane name."""
    t, numbers, places = e.type("f32"), _constant(tuple(column)), e.type("i32")
    e.needs |= {_PICK: Definition(_PICK, f"declare {t} @{_PICK}({t}, {places})"), numbers.name: numbers}
    table = e.line("f32", f"load {t}, ptr @{numbers.name}, align 64")
    return [e.line("f32", f"call {t} @{_PICK}({t} {table.text}, {places} {piece.text})") for piece in pieces]


@functools.cache
def _constant(column: tuple[float, ...]) -> Definition:
    numbers = [literal("f32", c) for c in column]
    name = f"dy2st.column.{hashlib.blake2b(''.join(numbers).encode(), digest_size=8).hexdigest()}"
    listed = ", ".join(f"float {number}" for number in numbers)
    return Definition(name, f"@{name} = internal unnamed_addr constant <{PIECES} x float> <{listed}>, align 64")


BY_PIECES: dict[str, Callable[[FormulaEmitter, VectorValue], VectorValue]] = {
    "exp": _exp,
    "tanh": partial(_odd, table=_TANH),
    "erf": partial(_odd, table=_ERF),
    "gelu": partial(_by_tail, name="gelu", table=_NORMAL_TAIL, made=_linear_unit),
    "gelu_tanh": partial(_by_tail, name="gelu_tanh", table=_CUBIC_TAIL, made=_linear_unit),
    "silu": partial(_by_tail, name="silu", table=_LOGISTIC_TAIL, made=_linear_unit),
    "sigmoid": partial(_by_tail, name="sigmoid", table=_LOGISTIC_TAIL, made=_sigmoid),
    "softplus": partial(_by_tail, name="softplus", table=_SOFTPLUS_TAIL, made=_softplus),
    "log_sigmoid": partial(_by_tail, name="log_sigmoid", table=_SOFTPLUS_TAIL, made=_log_sigmoid),
}
"""The functions of which there are pieces, and what writes each."""
