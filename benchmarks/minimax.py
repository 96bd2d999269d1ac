"""Compute the polynomials of dy2st/runtime/backends/cpu/libm and print them as `coefficients.py`.

    python benchmarks/minimax.py > dy2st/runtime/backends/cpu/libm/core/coefficients.py

Each is the minimax polynomial of a weighted error, by the exchange algorithm of E. Remez ("Sur le calcul effectif des
polynomes d'approximation de Tchebichef", 1934) in 60 digits, with coefficients rounded to the dtype. The weight is what
an error of the polynomial does to the relative error of the function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np

mp.mp.dps = 60
Number = mp.mpf | int
Real = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Fit:
    """A polynomial of `degree` near `target` on [low, high] with errors multiplied by `weight`."""

    name: str
    dtype: str
    degree: int
    low: Number
    high: Number
    target: Real
    weight: Real


def remez(fit: Fit, rounds: int = 12) -> tuple[list[mp.mpf], float]:
    """Return coefficients from the lowest power up and the largest weighted error."""
    n = fit.degree + 2
    low, high = mp.mpf(fit.low), mp.mpf(fit.high)
    target, weight = functools.cache(fit.target), functools.cache(fit.weight)
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (k + mp.mpf(3) / 7) / n) for k in range(n)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / (20 * n)) for k in range(20 * n + 1)]
    values = [(x, target(x), weight(x)) for x in grid]
    for _ in range(rounds):
        matrix, right = mp.matrix(n, n), mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            for j in range(n - 1):
                matrix[i, j] = weight(x) * x**j
            matrix[i, n - 1] = (-1) ** i
            right[i] = weight(x) * target(x)
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[j] for j in range(n - 1)]
        errors = [w * (mp.polyval(coefficients[::-1], x) - g) for x, g, w in values]
        nodes, worst = _alternation(grid, errors, n)
        if worst <= abs(solution[n - 1]) * mp.mpf("1.001"):
            break
    return coefficients, float(worst)


def _alternation(grid: list[mp.mpf], errors: list[mp.mpf], n: int) -> tuple[list[mp.mpf], mp.mpf]:
    """Return `n` points of alternating sign where the error is largest."""
    runs: list[int] = []
    for i, error in enumerate(errors):
        if runs and (error > 0) == (errors[runs[-1]] > 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > n:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    if len(runs) < n:
        raise ArithmeticError(f"the error alternates {len(runs)} times, not {n}")
    return [grid[i] for i in runs], max(abs(e) for e in errors)


def _smooth(function: Real, limit: mp.mpf) -> Real:
    """Return `function`, with its limit at 0."""
    return lambda x: limit if abs(x) < mp.mpf("1e-20") else function(x)


def _one(x: mp.mpf) -> mp.mpf:
    return mp.mpf(1)


def fits() -> list[Fit]:
    """List what is fitted, in the order of the file."""
    half, root = mp.log(2) / 2, mp.sqrt
    found: list[Fit] = []

    def add(
        name: str, degrees: tuple[int | None, int | None], low: Number, high: Number, target: Real, weight: Real = _one
    ) -> None:
        for dtype, degree in zip(("f32", "f64"), degrees, strict=True):
            if degree is not None:
                found.append(Fit(name, dtype, degree, low, high, target, weight))

    add("EXP", (4, 9), -half, half, _smooth(lambda x: (mp.expm1(x) - x) / x**2, mp.mpf("0.5")), lambda x: x**2)
    add("LOG", (7, None), root(mp.mpf("0.5")) - 1, root(2) - 1,
        _smooth(lambda x: (mp.log1p(x) - x + x**2 / 2) / x**3, mp.mpf(1) / 3), lambda x: x**2)  # fmt: skip
    add("LOG_RATIO", (None, 6), 0, ((root(2) - 1) / (root(2) + 1)) ** 2,
        _smooth(lambda z: (mp.atanh(root(z)) / root(z) - 1) * 2 / z, mp.mpf(2) / 3), lambda z: z)  # fmt: skip
    quarter = (mp.pi / 4 * mp.mpf("1.01")) ** 2
    add("SIN", (2, 5), 0, quarter, _smooth(lambda z: (mp.sin(root(z)) / root(z) - 1) / z, -mp.mpf(1) / 6), lambda z: z)
    add("COS", (2, 5), 0, quarter, _smooth(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24),
        lambda z: z**2)  # fmt: skip
    scale = 2 / root(mp.pi)
    add("ERF_NEAR", (6, 11), 0, 1, _smooth(lambda z: mp.erf(root(z)) / root(z) - 1, scale - 1))
    add("POW_WIDE_LOG2", (None, 12), root(mp.mpf("0.5")) - 1, root(2) - 1,
        _smooth(lambda x: mp.log1p(x) / x / mp.log(2), 1 / mp.log(2)))  # fmt: skip
    add("POW_WIDE_EXP2", (None, 6), -mp.mpf("0.5"), mp.mpf("0.5"), lambda x: mp.mpf(2) ** x)
    add("POW_TAIL", (None, 7), 0, mp.mpf("0.0295"),
        _smooth(lambda z: (mp.atanh(root(z)) / root(z) - 1 - z / 3) / z**2, mp.mpf("0.2")), lambda z: z**2)  # fmt: skip
    add("ATAN", (4, 10), 0, (root(2) - 1) ** 2 * mp.mpf("1.001"),
        _smooth(lambda z: (mp.atan(root(z)) / root(z) - 1) / z, -mp.mpf(1) / 3), lambda z: z)  # fmt: skip
    add("ASIN", (4, 12), 0, mp.mpf("0.25"),
        _smooth(lambda z: (mp.asin(root(z)) / root(z) - 1) / z, mp.mpf(1) / 6), lambda z: z)  # fmt: skip
    add("SINH", (3, 6), 0, 1, _smooth(lambda z: (mp.sinh(root(z)) / root(z) - 1) / z, mp.mpf(1) / 6), lambda z: z)
    found += _normal_tail() + _inverse_error_function()
    for dtype, degree, end in (("f32", 7, 4), ("f64", 20, 6)):
        found.append(Fit("ERFC_LOG2", dtype, degree, 1, end, lambda x: mp.log(mp.erfc(x), 2),
                         lambda x: mp.erfc(x) / mp.erf(x)))  # fmt: skip
    return found


def _shifted(fit: Fit, centre: Number) -> Fit:
    """Return the fit in powers of the distance from `centre`, which keeps Horner's rule from cancelling."""
    return replace(
        fit, low=fit.low - centre, high=fit.high - centre,
        target=lambda d: fit.target(d + centre), weight=lambda d: fit.weight(d + centre),
    )  # fmt: skip


def _normal_tail() -> list[Fit]:
    """List the upper tail of the normal distribution over e**(-x**2 / 2) t, t = 1 / (1 + x / 4), by t - 1/2."""

    def tail(t: mp.mpf) -> mp.mpf:
        x = 4 * (1 / t - 1)
        return mp.erfc(x / mp.sqrt(2)) / 2 * mp.exp(x**2 / 2) / t

    half = mp.mpf("0.5")
    return [
        _shifted(Fit("NORMAL_TAIL", dtype, degree, 1 / (1 + mp.mpf(end) / 4), 1, tail, lambda t: 1 / tail(t)), half)
        for dtype, degree, end in (("f32", 9, 15), ("f64", 23, 40))
    ]


def _inverse_error_function() -> list[Fit]:
    """List erfinv(x) / x by w = -log(1 - x**2), for large w by its root."""

    @functools.cache  # a weight asks for what its target has asked for
    def inverse(w: mp.mpf) -> mp.mpf:
        x = mp.sqrt(-mp.expm1(-w))
        return mp.erfinv(x) / x

    def by_root(v: mp.mpf) -> mp.mpf:
        return inverse(v**2)

    near, root, mpf = _smooth(inverse, mp.sqrt(mp.pi) / 2), mp.sqrt, mp.mpf
    found: list[Fit] = []
    for name, dtype, degree, low, high, centre, target in (
        ("NEAR", "f32", 9, 0, 5, "2.5", near), ("FAR", "f32", 9, root(5), mpf("4.2"), "3", by_root),
        ("NEAR", "f64", 23, 0, mpf("6.25"), "3.125", near), ("MIDDLE", "f64", 19, mpf("2.5"), 4, "3.25", by_root),
        ("FAR", "f64", 18, 4, mpf("6.1"), "5", by_root),
    ):  # fmt: skip
        weight = functools.partial(lambda f, x: 1 / f(x), target)
        found.append(_shifted(Fit(f"ERFINV_{name}", dtype, degree, low, high, target, weight), mpf(centre)))
    return found


def parts(value: mp.mpf, *bits: int) -> list[float]:
    """Return numbers of the given significant bits whose sum is `value`, to about the last of them."""
    found = []
    for count in bits:
        scale = mp.mpf(2) ** (count - 1 - int(mp.floor(mp.log(abs(value), 2))))
        found.append(float(mp.floor(value * scale + mp.mpf("0.5")) / scale))
        value -= mp.mpf(found[-1])
    return found


def constants() -> list[tuple[str, list[float]]]:
    """List constants in parts: all but the last so short that a small whole number times them is exact."""
    found: list[tuple[str, list[float]]] = []
    for name, value in (("LOG_2", mp.log(2)), ("LOG10_2", mp.log10(2))):
        found += [(f"{name}_F32", parts(value, 10, 24)), (f"{name}_F64", parts(value, 32, 53))]
    found += [("HALF_PI_F32", parts(mp.pi / 2, 24, 24)), ("HALF_PI_F64", parts(mp.pi / 2, 53, 53))]
    scale = mp.sqrt(8 / mp.pi)
    found += [("GELU_SCALE", parts(scale, 53, 53)), ("GELU_CUBIC", parts(scale * mp.mpf("0.044715"), 53, 53))]
    found += [("POW_THIRD", parts(mp.mpf(1) / 3, 53, 53)), ("POW_SCALE", parts(2 / mp.log(2), 53, 53))]
    return [*found, ("HALF_PI_REDUCTION", parts(mp.pi / 2, 32, 32, 53))]


def main() -> None:
    print(open_text())
    for name, numbers in constants():
        print(f"{name} = ({', '.join(map(repr, numbers))})")
    print("# the first 1216 bits of 2 / pi, after 40 zeros")
    mp.mp.dps = 400
    bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1216))
    mp.mp.dps = 60
    digits = (bytes(5) + bits.to_bytes(152)).hex()
    lines = "".join(f'\n    "{digits[i : i + 88]}"' for i in range(0, len(digits), 88))
    print(f"TWO_OVER_PI = bytes.fromhex({lines}\n)")
    for fit in fits():
        coefficients, worst = remez(fit)
        kind = np.float32 if fit.dtype == "f32" else np.float64
        numbers = ", ".join(repr(float(kind(float(c)))) for c in coefficients)
        print(f"# within 2 ** {math.log2(worst):.1f}\n{fit.name}_{fit.dtype.upper()} = ({numbers})")


def open_text() -> str:
    return '''"""Coefficients of the minimax polynomials, and constants in parts.

Made by benchmarks/minimax.py, which says how; not written by hand. From the lowest power up.
"""
'''


if __name__ == "__main__":
    main()
