"""What the elementary functions should give, and where to look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from scipy import special

Reference = Callable[..., Any]


def _precise(function: Callable[[Any], Any]) -> Reference:
    """Return the function of arrays by mpmath, for float64; finite results only."""

    def one(x: Any) -> Any:
        with mpmath.workdps(30):
            head = function(mpmath.mpf(float(x)))
            return np.longdouble(float(head)) + np.longdouble(float(head - mpmath.mpf(float(head))))

    return lambda x: np.array([one(v) for v in x.ravel()], np.longdouble).reshape(x.shape)


def _gelu_tanh(x: Any) -> Any:
    pi = np.longdouble("3.14159265358979323846264338327950288")
    return x / (1 + np.exp(-np.sqrt(8 / pi) * (x + np.longdouble("0.044715") * x * x * x)))


UNARY: Mapping[str, Reference] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "rsqrt": lambda x: 1 / np.sqrt(x), "trunc": np.trunc, "rint": np.rint,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: np.where(x == -np.inf, np.nan, x / (1 + np.exp(-x))),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "log_sigmoid": lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
    "gelu_tanh": lambda x: np.where(x == -np.inf, np.nan, _gelu_tanh(x)),
}  # fmt: skip
"""By long double, whose errors are small against those of float64."""

IN_FLOAT64: Mapping[str, Reference] = {
    "erf": special.erf,
    "erfinv": special.erfinv,
    "gelu": lambda x: np.where(x == -np.inf, np.nan, x * special.ndtr(np.clip(x, -60, 60))),
    "lgamma": lambda x: np.where(x == -np.inf, np.inf, special.gammaln(x)),
    "digamma": special.digamma,
    "i0e": special.i0e,
    "i1e": special.i1e,
}
"""By float64: for float32 alone."""

BY_MPMATH: Mapping[str, Reference] = {
    "erf": _precise(mpmath.erf),
    "erfinv": _precise(mpmath.erfinv),
    "gelu": _precise(lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    "lgamma": _precise(lambda x: mpmath.loggamma(x).real),
    "digamma": _precise(mpmath.digamma),
    "i0e": _precise(lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x))),
    "i1e": _precise(lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x))),
}
"""For float64, some thousands of numbers."""

RANGES: Mapping[str, tuple[float, float]] = {
    "erf": (-38, 38), "gelu": (-38, 38), "erfinv": (-1, 1), "lgamma": (0, 1e4), "digamma": (1e-300, 1e4),
    "i0e": (-1e4, 1e4), "i1e": (-1e4, 1e4),
}  # fmt: skip
"""Where those are compared; below 0 lgamma and digamma are small against 1 where they are near a zero."""


def within(name: str, x: Any) -> Any:
    """Return the numbers inside of a function's range."""
    low, high = RANGES[name]
    return x[(x > low) & (x < high)]


BINARY: Mapping[str, Reference] = {
    "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "nextafter": np.nextafter, "fmod": np.fmod, "mod": np.mod,
    "floordiv": np.floor_divide,
}  # fmt: skip
EXACT = ("nextafter", "fmod", "mod", "floordiv")
"""Binary functions whose results NumPy gives exactly in the dtype itself."""

SINGULAR = {"erfinv": (-1, 1)}


def numbers(kind: Any, count: int, seed: int = 0) -> Any:
    """Return numbers of all sizes, more of them about 1, and the special ones."""
    rng = np.random.default_rng(seed)
    whole = np.uint32 if kind is np.float32 else np.uint64
    top = float(np.iinfo(whole).max)
    bits = (np.linspace(0, top, count, endpoint=False) if whole is np.uint32 else rng.uniform(0, top, count)).astype(
        whole
    )
    spread = [rng.uniform(-s, s, count // 4) for s in (1, 10, 100, 1000)]
    near_one = 1 + rng.uniform(-1, 1, count // 4) * 10.0 ** rng.uniform(-8, 0, count // 4)
    return np.concatenate([bits.view(kind), *(s.astype(kind) for s in spread), near_one.astype(kind), edges(kind)])


def edges(kind: Any) -> Any:
    """Return the special numbers of a dtype."""
    f = np.finfo(kind)
    positive = [0.0, np.inf, 1, 2, 3, 4, 0.5, 1.5, 2.5, 1e30, f.max, f.tiny, f.smallest_subnormal, f.eps,
                2.0 ** (f.nmant) + 1, 2.0 ** (f.nmant + 1) - 1, 0.49999997, 0.46875]  # fmt: skip
    return np.array([*positive, *(-x for x in positive), np.nan], kind)


def pairs(kind: Any, count: int) -> tuple[Any, Any]:
    """Return pairs of numbers: all of the special ones, and pairs on which binary functions do various things."""
    rng = np.random.default_rng(3)
    special_numbers = edges(kind)
    x = [np.repeat(special_numbers, special_numbers.size), rng.normal(size=count) * 10.0 ** rng.uniform(-3, 3, count),
         rng.uniform(0.5, 2, count), np.exp(rng.uniform(-80, 80, count)),
         1 + rng.normal(size=count) * 10.0 ** rng.uniform(-7, -1, count)]  # fmt: skip
    y = [np.tile(special_numbers, special_numbers.size), rng.integers(-9, 9, count), rng.uniform(-100, 100, count),
         rng.uniform(-2, 2, count), rng.normal(size=count) * 10.0 ** rng.uniform(0, 6, count)]  # fmt: skip
    return np.concatenate(x).astype(kind), np.concatenate(y).astype(kind)
