"""Compute the tables of dy2st/runtime/cpu/math/pieces.py and print them as `piece_coefficients.py`.

    python benchmarks/pieces.py > dy2st/runtime/cpu/math/piece_coefficients.py

Each piece has the polynomial of least relative error (minimax.py), in the distance from its middle. The first one of a
function that is 0 at 0 has no constant. Where a width is a power of 2, numbers are cut into pieces by additions alone.
"""

from __future__ import annotations

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


def _logistic(x: mp.mpf) -> mp.mpf:
    return 1 / (1 + mp.exp(x))


def _cubic(x: mp.mpf) -> mp.mpf:
    return mp.sqrt(8 / mp.pi) * (x + mp.mpf("0.044715") * x**3)


ALL = (
    Pieces("NORMAL_TAIL", lambda x: mp.erfc(x / mp.sqrt(2)) / 2, mp.mpf("0.25"), 6),
    Pieces("CUBIC_TAIL", lambda x: _logistic(_cubic(x)), mp.mpf("0.25"), 6),
    Pieces("LOGISTIC_TAIL", _logistic, mp.mpf("0.5"), 5),
    Pieces("SOFTPLUS_TAIL", lambda x: mp.log1p(mp.exp(-x)), mp.mpf("0.5"), 5),
    Pieces("TANH", mp.tanh, mp.mpf("0.625"), 7, odd=True),
    Pieces("ERF", mp.erf, mp.mpf("0.265625"), 5, odd=True),
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


def _one(pieces: Pieces, middle: mp.mpf, half: mp.mpf) -> tuple[list[mp.mpf], float]:
    def target(distance: mp.mpf) -> mp.mpf:
        return pieces.function(middle + distance)

    return remez(Fit("", "f32", pieces.degree, -half, half, target, lambda d: 1 / target(d)))


def _from_zero(pieces: Pieces, half: mp.mpf) -> tuple[list[mp.mpf], float]:
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
        columns = "".join(_column([row[power] for row in table]) for power in range(pieces.degree + 1))
        print(f"{pieces.name} = (\n{columns})")


def _column(numbers: list[mp.mpf]) -> str:
    texts = [repr(float(np.float32(float(number)))) for number in numbers]
    lines = [", ".join(texts[i : i + 4]) for i in range(0, PIECES, 4)]
    return "    (" + ",\n     ".join(lines) + "),\n"


if __name__ == "__main__":
    main()
