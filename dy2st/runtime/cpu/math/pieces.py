"""Functions of float32 by pieces: a short polynomial for each, whose coefficients are picked in registers.

AVX-512 permutes 16 floats by one instruction, so that a register is a table of 16 entries. |x| is cut into pieces of
one width, the first about 0; the number of its piece picks each coefficient of a polynomial in the distance from the
middle of the piece. That is a dozen instructions without e**x or a division. Beyond the last piece, which is rare,
stands the formula that every target has.

e**x is 2**n 2**(k/16) e**r with the power of 2 picked, so that r is small and three powers of it are enough.

The other pieces are of functions of |x| that go to 0: the share T of a linear unit x T(-x), so that it is max(x, 0) -
|x| T(|x|) and precise on both sides; or odd ones, by a polynomial without a constant about 0, which are 1 in the end.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence

from dy2st.records import record
from dy2st.runtime.cpu.definition import Definition, called
from dy2st.runtime.cpu.math import piece_coefficients as by_name
from dy2st.runtime.cpu.math.coefficients import LOG_2_F32
from dy2st.runtime.cpu.math.emitter import Emitter, Lanes, literal
from dy2st.runtime.cpu.math.exponential import LARGEST_ARGUMENT, LEAST_ARGUMENT
from dy2st.runtime.cpu.math.functions import function
from dy2st.runtime.cpu.math.representation import form
from dy2st.runtime.cpu.math.scaling import scaled_with_avx512
from dy2st.runtime.cpu.math.vectors import Parts, by_vectors

PIECES = 16
LAST = PIECES - 0.75
"""How many widths |x| may be, with room for the rounding of the quotient."""
_PICK = "llvm.x86.avx512.permvar.sf.512"


@record(frozen=True)
class Table:
    """The polynomials of the pieces: for each power from the lowest up, the coefficients of all pieces."""

    width: float
    columns: tuple[tuple[float, ...], ...]

    @property
    def end(self) -> float:
        """What |x| is to be below."""
        return LAST * self.width


_NORMAL_TAIL = Table(by_name.NORMAL_TAIL_WIDTH, by_name.NORMAL_TAIL)
_CUBIC_TAIL = Table(by_name.CUBIC_TAIL_WIDTH, by_name.CUBIC_TAIL)
_LOGISTIC_TAIL = Table(by_name.LOGISTIC_TAIL_WIDTH, by_name.LOGISTIC_TAIL)
_SOFTPLUS_TAIL = Table(by_name.SOFTPLUS_TAIL_WIDTH, by_name.SOFTPLUS_TAIL)
_TANH = Table(by_name.TANH_WIDTH, by_name.TANH)
_ERF = Table(by_name.ERF_WIDTH, by_name.ERF)


def _linear_unit(e: Emitter, x: Lanes, tail: Lanes) -> Lanes:
    return e.fma(-e.abs(x), tail, e.largest(x, 0.0))


def _sigmoid(e: Emitter, x: Lanes, tail: Lanes) -> Lanes:
    return e.select(x < 0.0, tail, 1.0 - tail)


def _softplus(e: Emitter, x: Lanes, tail: Lanes) -> Lanes:
    return e.largest(x, 0.0) + tail


def _log_sigmoid(e: Emitter, x: Lanes, tail: Lanes) -> Lanes:
    return e.smallest(x, 0.0) - tail


_BY_TAILS: dict[str, tuple[Table, Callable[[Emitter, Lanes, Lanes], Lanes]]] = {
    "gelu": (_NORMAL_TAIL, _linear_unit),
    "gelu_tanh": (_CUBIC_TAIL, _linear_unit),
    "silu": (_LOGISTIC_TAIL, _linear_unit),
    "sigmoid": (_LOGISTIC_TAIL, _sigmoid),
    "softplus": (_SOFTPLUS_TAIL, _softplus),
    "log_sigmoid": (_SOFTPLUS_TAIL, _log_sigmoid),
}
_ODD: dict[str, Table] = {"tanh": _TANH, "erf": _ERF}
BY_PIECES = ("exp", *_BY_TAILS, *_ODD)
"""The functions of which there are pieces."""


@functools.cache
def by_pieces(name: str, lanes: int) -> Definition:
    """Return the function `name` of float32, of any number of lanes, for a CPU with AVX-512."""
    symbol, e = f"dy2st.{name}.f32.{lanes}", Emitter(lanes)
    t, x = e.type("f32"), Lanes(e, "f32", "%x")
    if lanes < PIECES:  # as in a whole vector
        whole = by_pieces(name, PIECES)
        result = by_vectors(e, PIECES, lambda parts: [e.call(whole, "f32", part) for part in parts], x)
    elif name == "exp":
        result = _exp(e, x)
    elif name in _ODD:
        table = _ODD[name]
        result = e.copysign(_value(e, e.smallest(e.abs(x), table.end), table), x)
    else:
        result = _by_tail(e, x, name)
    head = f"define internal {t} @{symbol}({t} %x) alwaysinline nounwind {{"
    return Definition(
        symbol, "\n".join([head, "entry:", *e.lines, f"  ret {t} {result.text}", "}"]), tuple(e.needs.values())
    )


def _exp(e: Emitter, x: Lanes) -> Lanes:
    """Write e**x."""
    (log_2, log_2_rest), shifter = LOG_2_F32, form("f32").shifter / PIECES
    x = e.smallest(e.largest(x, LEAST_ARGUMENT["f32"]), LARGEST_ARGUMENT["f32"])
    shifted = e.fma(x, 1 / math.log(2), shifter)  # its last bits are k
    n = shifted - shifter  # and k / 16, which the last instruction takes off
    r = e.fma(n, -log_2_rest, e.fma(n, -log_2, x))
    powers = [2 ** (k / PIECES) for k in range(PIECES)]
    power = by_vectors(e, PIECES, lambda pieces: _picked(e, pieces, powers), e.bits(shifted))
    growth = e.polynomial(r, (1.0, *by_name.EXP))
    return e.call(scaled_with_avx512("f32", e.lanes), "f32", e.fma(power * r, growth, power), e.bits(shifted), n)


def _by_tail(e: Emitter, x: Lanes, name: str) -> Lanes:
    """Write a function that a tail makes, and what every target has where |x| is beyond the pieces."""
    table, made = _BY_TAILS[name]
    a = e.abs(x)
    far = a >= table.end

    def beyond(near: Sequence[Lanes]) -> list[Lanes]:
        return [e.select(far, e.call(_everywhere(name, e.lanes), "f32", x), near[0])]

    (result,) = e.where_rare(far, [made(e, x, _value(e, a, table))], beyond)
    return result


def _everywhere(name: str, lanes: int) -> Definition:
    """Return the function that every target has, under a name of its own, as one that is called."""
    plain = function(name, "f32", lanes)
    symbol = f"dy2st.far.{name}.f32.{lanes}"
    return called(Definition(symbol, plain.text.replace(f"@{plain.name}(", f"@{symbol}("), plain.needs))


def _value(e: Emitter, a: Lanes, table: Table) -> Lanes:
    """Write the polynomial of the piece of a >= 0."""
    shifted, distance = _cut(e, a, table.width)

    def polynomial(pieces: Parts, distances: Parts) -> Parts:
        totals = _picked(e, pieces, table.columns[-1])
        for column in table.columns[-2::-1]:
            picked = _picked(e, pieces, column)
            totals = [e.fma(*three) for three in zip(totals, distances, picked, strict=True)]
        return totals

    return by_vectors(e, PIECES, polynomial, e.bits(shifted), distance)


def _cut(e: Emitter, a: Lanes, width: float) -> tuple[Lanes, Lanes]:
    """Write a number whose last bits are the number of the piece of a >= 0, and the distance from its middle."""
    shifter = form("f32").shifter
    if math.frexp(width)[0] == 0.5:  # additions are left to the parts of the CPU that do not multiply
        shifted = a + shifter * width
        return shifted, a - (shifted - shifter * width)
    shifted = e.fma(a, 1 / width, shifter)
    return shifted, e.fma(shifted - shifter, -width, a)


def _picked(e: Emitter, pieces: Parts, column: Sequence[float]) -> Parts:
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
