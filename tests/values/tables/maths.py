"""Elementwise mathematics and arithmetic."""

import numpy as np
import scipy.special as special

from tests.values.operands import HOLED, A, B, C, I, J, N, S, V
from tests.values.row import everywhere, row


def _lgamma(x):
    return np.where(np.isneginf(x), np.inf, special.gammaln(x))


_UNARY = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "deg2rad": np.deg2rad, "digamma": special.digamma,
    "erf": special.erf, "erfinv": special.erfinv, "exp": np.exp, "expm1": np.expm1, "floor": np.floor,
    "frac": lambda x: x - np.trunc(x), "gammaln": _lgamma, "lgamma": _lgamma, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logit": special.logit, "neg": np.negative,
    "positive": np.positive, "rad2deg": np.rad2deg, "reciprocal": np.reciprocal,
    "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x), "sgn": np.sign, "sign": np.sign, "sin": np.sin,
    "sinc": np.sinc, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan, "tanh": np.tanh,
    "stanh": lambda x: 1.7159 * np.tanh(0.67 * x), "trunc": np.trunc, "nn.functional.sigmoid": special.expit,
}  # fmt: skip
_BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "pow": np.power, "maximum": np.maximum,
    "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2, "hypot": np.hypot,
    "logaddexp": np.logaddexp, "ldexp": lambda x, y: x * 2.0**y, "copysign": np.copysign, "heaviside": np.heaviside,
}  # fmt: skip

ROWS = [
    *(r for name, f in _UNARY.items() for r in everywhere(name, f, A)),
    *(r for n in ("i0e", "i1e", "i0", "i1") for r in everywhere(n, getattr(special, n), C * 3)),
    row("i0e", (V * 100,), special.i0e(V * 100)),
    row("i1e", (-V * 100,), special.i1e(-V * 100)),
    *everywhere("acosh", np.arccosh, A + 1),
    *(r for name, f in _BINARY.items() for r in everywhere(name, f, A, B)),
    *(row(name, (I, J), f(I, J)) for name, f in {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "floor_divide": np.floor_divide,
        "remainder": np.remainder, "maximum": np.maximum, "minimum": np.minimum, "pow": lambda x, y: x**y,
        "gcd": np.gcd, "lcm": np.lcm}.items()),
    row("divide", (I, J), (I / J).astype(np.float32)),
    row("divide", (I, J), I // J, rounding_mode="floor"),
    row("divide", (I, J), np.trunc(I / J).astype(np.int64), rounding_mode="trunc"),
    row("divide", (C, 0.3), np.floor(C / 0.3), rounding_mode="floor"),
    row("add", (A, B), A + 2 * B, alpha=2),
    row("subtract", (A, B), A - 2 * B, alpha=2),
    row("abs", (I,), np.abs(I)),
    row("round", (C,), np.round(C, 1), decimals=1),
    row("logit", (A,), special.logit(np.clip(A, 0.4, 0.6)), eps=0.4),
    row("stanh", (C,), 3 * np.tanh(0.5 * C), scale_a=0.5, scale_b=3.0),
    row("scale", (A,), A * 2 + 1, scale=2.0, bias=1.0),
    row("scale", (A,), (A + 1) * 2, scale=2.0, bias=1.0, bias_after_scale=False),
    row("scale", (C,), np.maximum(C * 2 + 1, 0), scale=2.0, bias=1.0, act="relu"),
    row("increment", (np.array([2.0]),), np.array([3.5]), value=1.5).but(variants=("float64", "float32")),
    row("add_n", ([A, B, A],), A + B + A),
    row("add_n", (A,), A),
    row("clip", (C,), np.clip(C, -0.5, 0.5), min=-0.5, max=0.5),
    row("clip", (C,), np.minimum(C, 0.5), max=0.5),
    row("clip", (I,), np.clip(I, -2.5, 3.5).astype("float32"), min=-2.5, max=3.5).only("float64", "program"),
    row("clip", (I,), np.clip(I, -2, 3), min=-2, max=3).only("float64", "program"),
    row("clip", (N,), np.clip(N, -0.5, 0.5), min=-0.5, max=0.5),
    row("lerp", (A, B), A + 0.25 * (B - A), weight=0.25),
    row("lerp", (A, B, S[:1] * 0 + 0.5), (A + B) / 2).but(known_extents=True),
    row("nan_to_num", (N,), np.nan_to_num(N, nan=2.0, posinf=3.0, neginf=4.0), nan=2.0, posinf=3.0, neginf=4.0),
    row("nan_to_num", (N,), np.nan_to_num(N)).only("float64", "program"),
    row("polygamma", (A,), special.polygamma(1, A), n=1),
    row("polygamma", (A,), special.digamma(A), n=0),
    row("gammainc", (A + 2, B + 2), special.gammainc(A + 2, B + 2)),
    row("gammaincc", (A + 2, B + 2), special.gammaincc(A + 2, B + 2)),
    row("gammaincc", (V, V[::-1]), special.gammaincc(V, V[::-1])).only("float64", "program"),
    row("multigammaln", (A + 3,), np.vectorize(lambda x: special.multigammaln(x, 3))(A + 3), p=3),
    row("nextafter", (A, B), np.nextafter(A, B)).only("float64", "strided", "program"),
    row("rsqrt", (V,), V**-0.5),
    *everywhere("frexp", lambda x: (np.frexp(x)[0], np.frexp(x)[1].astype(np.float64)), C * 8),
    row("trapezoid", (A,), np.trapezoid(A)),
    row("trapezoid", (A,), np.trapezoid(A, dx=0.5, axis=0), dx=0.5, axis=0),
    row("trapezoid", (S, V[1:]), np.trapezoid(S, V[1:], axis=0), axis=0),
    row("nansum", (HOLED,), np.nansum(HOLED)),
]  # fmt: skip
