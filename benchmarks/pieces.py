"""Compute the tables of dy2st/runtime/backends/cpu/libm/piecewise_polynomials.py and print them as
`piecewise_coefficients.py`.

    python benchmarks/pieces.py > dy2st/runtime/backends/cpu/libm/core/piecewise_coefficients.py

Each piece has the polynomial of least relative error (minimax.py), in the distance from its middle. The first one of a
function that is 0 at 0 has no constant, and its middle is 0. Where pieces have one width and that is a power of 2,
numbers are cut by additions alone. Others are as wide as a function needs: `Spread`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import mpmath as mp
import numpy as np

from benchmarks.minimax import Fit, Number, Real, remez

PIECES = 16
OPEN = '''"""Coefficients of functions by pieces: the width of one; a row for each power, from the lowest up.

Made by benchmarks/pieces.py, which says how; not written by hand.
"""

# fmt: off'''


@dataclass(frozen=True)
class Pieces:
    """A function on [0, 15.5 widths) by polynomials of `degree`."""

    name: str
    function: Real
    width: Number
    degree: int
    odd: bool = False


@dataclass(frozen=True)
class Spread:
    """A function by pieces of y = FROM + SIGN |x|, `steps` for each power of 2: wide where y is large."""

    name: str
    function: Real
    start: Number
    sign: int
    steps: int
    degree: int
    odd: bool = False

    def pieces(self) -> list[tuple[int, mp.mpf, mp.mpf]]:
        """Return the number of each piece in a table, and where it begins and ends."""
        bounds = [mp.mpf(2) ** e * (1 + mp.mpf(j) / self.steps) for e in range(-4, 6) for j in range(self.steps)]
        if self.sign > 0:
            inner = [y for y in bounds if y > self.start][:PIECES]
        else:
            inner = [y for y in bounds if y < self.start][: -PIECES - 1 : -1]
        ends = [mp.mpf(0), *(abs(y - self.start) for y in inner)]
        found: list[tuple[int, mp.mpf, mp.mpf]] = []
        for low, high in itertools.pairwise(ends):
            bits = np.float32(float(self.start + self.sign * (low + high) / 2)).view(np.uint32)
            found.append((int(bits >> self.places) % PIECES, low, high))
        return found

    @property
    def places(self) -> int:
        """By how many places the bits of y are shifted."""
        return 23 - self.steps.bit_length() + 1


def _logistic(x: mp.mpf) -> mp.mpf:
    return 1 / (1 + mp.exp(x))


def _cubic(x: mp.mpf) -> mp.mpf:
    return mp.sqrt(8 / mp.pi) * (x + mp.mpf("0.044715") * x**3)


ALL = (
    Pieces("LOGISTIC_TAIL", _logistic, mp.mpf("0.5"), 5),
    Pieces("SOFTPLUS_TAIL", lambda x: mp.log1p(mp.exp(-x)), mp.mpf("0.5"), 5),
    Pieces("ERF", mp.erf, mp.mpf("0.265625"), 5, odd=True),
)

SPREAD = (
    Spread("NORMAL_TAIL", lambda x: mp.erfc(x / mp.sqrt(2)) / 2, 7, -1, 8, 6),
    Spread("CUBIC_TAIL", lambda x: _logistic(_cubic(x)), mp.mpf("6.5"), -1, 8, 6),
    Spread("TANH", mp.tanh, mp.mpf("0.625"), 1, 4, 5, odd=True),
)


def rows(pieces: Pieces) -> tuple[list[list[mp.mpf]], float]:
    """Return the coefficients of each piece and the largest relative error of all."""
    found: list[list[mp.mpf]] = []
    worst, half = 0.0, mp.mpf(pieces.width) / 2
    for number in range(PIECES):
        if pieces.odd and number == 0:
            coefficients, error = _from_zero(pieces, half)
        else:
            coefficients, error = _one(pieces, number * mp.mpf(pieces.width), half)
        found.append(coefficients)
        worst = max(worst, error)
    return found, worst


def spread_rows(spread: Spread) -> tuple[list[mp.mpf], list[list[mp.mpf]], float, mp.mpf]:
    """Return middles, coefficients in the order of the table, the largest relative error, and where the last ends."""
    middles, found = [mp.mpf(0)] * PIECES, [[mp.mpf(0)]] * PIECES
    worst, end = 0.0, mp.mpf(0)
    for number, low, high in spread.pieces():
        middle, half = (low + high) / 2, (high - low) / 2
        if spread.odd and low == 0:
            middle = mp.mpf(0)
            found[number], error = _from_zero(spread, high)
        else:
            found[number], error = _one(spread, middle, half)
        middles[number], worst, end = middle, max(worst, error), high
    return middles, found, worst, end


def _one(pieces: Pieces | Spread, middle: mp.mpf, half: mp.mpf) -> tuple[list[mp.mpf], float]:
    def target(distance: mp.mpf) -> mp.mpf:
        return pieces.function(middle + distance)

    return remez(Fit("", "f32", pieces.degree, -half, half, target, lambda d: 1 / target(d)))


def _from_zero(pieces: Pieces | Spread, half: mp.mpf) -> tuple[list[mp.mpf], float]:
    def ratio(x: mp.mpf) -> mp.mpf:
        x = max(x, mp.mpf("1e-15"))
        return pieces.function(x) / x

    factors, error = remez(Fit("", "f32", pieces.degree - 1, 0, half, ratio, lambda x: 1 / ratio(x)))
    return [mp.mpf(0), *factors], error


def _exponential() -> tuple[list[mp.mpf], float]:
    """Return the polynomial by which e**r is 1 + r + r**2 (...), for |r| <= log(2) / 32."""
    end = mp.log(2) / (2 * PIECES) * mp.mpf("1.001")

    def target(r: mp.mpf) -> mp.mpf:
        return (mp.expm1(r) - r) / r**2 if abs(r) > mp.mpf("1e-20") else mp.mpf("0.5")

    return remez(Fit("", "f32", 1, -end, end, target, lambda r: r**2))


def main() -> None:
    print(OPEN)
    found, worst = _exponential()
    print(
        f"# within 2 ** {math.log2(worst):.1f}\nEXP = ({', '.join(repr(float(np.float32(float(c)))) for c in found)})"
    )
    for pieces in ALL:
        table, worst = rows(pieces)
        print(f"# within 2 ** {math.log2(worst):.1f}\n{pieces.name}_WIDTH = {float(pieces.width)}")
        print(_columns(pieces, table))
    for spread in SPREAD:
        middles, table, worst, end = spread_rows(spread)
        start = np.float32(float(spread.start))
        if spread.sign < 0:  # so that 0 is in the first piece, not at the end of one above it
            start = np.nextafter(start, np.float32(0))
        last = np.nextafter(np.float32(float(end)), np.float32(0))
        print(
            f"# within 2 ** {math.log2(worst):.1f}\n{spread.name}_CUT = ({float(start)}, {float(spread.sign)},"
            f" {spread.places}, {float(last)})\n{spread.name}_MIDDLES = {_column(middles).strip().rstrip(',')}"
        )
        print(_columns(spread, table))


def _columns(pieces: Pieces | Spread, table: list[list[mp.mpf]]) -> str:
    columns = "".join(_column([row[power] for row in table]) for power in range(pieces.degree + 1))
    return f"{pieces.name} = (\n{columns})"


def _column(numbers: list[mp.mpf]) -> str:
    texts = [repr(float(np.float32(float(number)))) for number in numbers]
    lines = [", ".join(texts[i : i + 4]) for i in range(0, PIECES, 4)]
    return "    (" + ",\n     ".join(lines) + "),\n"


if __name__ == "__main__":
    main()
