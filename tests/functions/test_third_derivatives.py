"""Functions of one number and their derivatives to the third order beside mpmath, at common and extreme points."""

import mpmath
import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.incubate.autograd import jet

SMALL, COMMON, LARGE = (1e-8, -1e-5), (-1.7, -0.4, 0.3, 0.9, 2.2), (12.0, -25.0, 60.0)
ALL, INSIDE = SMALL + COMMON + LARGE, (1e-8, -1e-5, -0.9, -0.3, 0.2, 0.7, 0.99)
POSITIVE = (1e-6, 0.02, 0.5, 1.0, 3.3, 80.0, 1e6)
logistic = lambda x: 1 / (1 + mpmath.exp(-x))
FUNCTIONS = {
    "exp": (paddle.exp, mpmath.exp, ALL), "expm1": (paddle.expm1, mpmath.expm1, ALL),
    "log": (paddle.log, mpmath.log, POSITIVE), "log1p": (paddle.log1p, mpmath.log1p, (-0.9, *SMALL, 0.3, 5.0, 1e6)),
    "log2": (paddle.log2, lambda x: mpmath.log(x, 2), POSITIVE), "log10": (paddle.log10, mpmath.log10, POSITIVE),
    "sqrt": (paddle.sqrt, mpmath.sqrt, POSITIVE), "rsqrt": (paddle.rsqrt, lambda x: x ** mpmath.mpf("-0.5"), POSITIVE),
    "reciprocal": (paddle.reciprocal, lambda x: 1 / x, (-2.0, *POSITIVE)),
    "square": (paddle.square, lambda x: x * x, ALL),
    "sin": (paddle.sin, mpmath.sin, ALL), "cos": (paddle.cos, mpmath.cos, ALL),
    "tan": (paddle.tan, mpmath.tan, COMMON), "asin": (paddle.asin, mpmath.asin, INSIDE),
    "acos": (paddle.acos, mpmath.acos, INSIDE), "atan": (paddle.atan, mpmath.atan, ALL),
    "sinh": (paddle.sinh, mpmath.sinh, ALL), "cosh": (paddle.cosh, mpmath.cosh, ALL),
    "tanh": (paddle.tanh, mpmath.tanh, (*SMALL, *COMMON)), "asinh": (paddle.asinh, mpmath.asinh, ALL),
    "acosh": (paddle.acosh, mpmath.acosh, (1.01, 1.5, 3.0, 1e4)), "atanh": (paddle.atanh, mpmath.atanh, INSIDE),
    "erf": (paddle.erf, mpmath.erf, (*SMALL, *COMMON, 4.0)), "erfinv": (paddle.erfinv, mpmath.erfinv, INSIDE),
    "lgamma": (paddle.lgamma, mpmath.loggamma, POSITIVE[1:]),
    "digamma": (paddle.digamma, mpmath.digamma, POSITIVE[1:]),
    "sigmoid": (F.sigmoid, logistic, (*SMALL, *COMMON, -25.0)),
    "silu": (F.silu, lambda x: x * logistic(x), (*SMALL, *COMMON)),
    "softplus": (F.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), (*SMALL, *COMMON, -25.0)),
    "log_sigmoid": (F.log_sigmoid, lambda x: -mpmath.log1p(mpmath.exp(-x)), (*SMALL, *COMMON, 12.0)),
    "gelu": (F.gelu, lambda x: x * mpmath.ncdf(x), (*SMALL, *COMMON, -6.0)),
    "softsign": (F.softsign, lambda x: x / (1 + abs(x)), COMMON),
    "i0": (paddle.i0, lambda x: mpmath.besseli(0, x), COMMON),
    "i1": (paddle.i1, lambda x: mpmath.besseli(1, x), COMMON),
    "i0e": (paddle.i0e, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), COMMON),
    "sinc": (paddle.sinc, mpmath.sincpi, COMMON), "x ** 2.5": (lambda x: x**2.5, lambda x: x**2.5, POSITIVE),
    "2.5 ** x": (lambda x: 2.5**x, lambda x: mpmath.mpf("2.5") ** x, COMMON),
    "x ** x": (lambda x: x**x, lambda x: x**x, POSITIVE[1:5]),
    "mish": (F.mish, lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), COMMON),
    "logit": (paddle.logit, lambda x: mpmath.log(x / (1 - x)), (0.01, 0.4, 0.9)),
}  # fmt: skip


def wanted(function, x):
    with mpmath.workdps(60):
        series = mpmath.taylor(function, mpmath.mpf(x), 3)
        return [float(mpmath.re(c) * mpmath.factorial(i)) for i, c in enumerate(series)]


def nested(function, x):
    """Derivatives by reverse mode of reverse mode of reverse mode."""
    t = paddle.to_tensor(x, stop_gradient=False)
    found = [function(t)]
    for _ in range(3):
        zero = paddle.zeros_like(t)
        slope = None
        if not found[-1].stop_gradient:
            (slope,) = paddle.grad(found[-1].sum(), t, create_graph=True, allow_unused=True)
        found.append(zero if slope is None else slope)
    return [f.numpy() for f in found]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_to_the_third_order(name):
    function, precise, points = FUNCTIONS[name]
    x = np.array(points)
    rows = np.array([wanted(precise, p) for p in points]).T
    value, slopes = jet(function, paddle.to_tensor(x), order=3)
    static = paddle.jit.to_static(lambda t: [value, *jet(function, t, order=3)[1]], full_graph=True)
    ways = [[value.numpy(), *(s.numpy() for s in slopes)], nested(function, x)]
    ways += [[s.numpy() for s in static(paddle.to_tensor(x))] for _ in range(2)]
    for way in ways:
        for order, (found, row) in enumerate(zip(way, rows, strict=True)):
            off = np.abs(found - row) > 1e-9 * np.abs(row) + 1e-12 * np.abs(rows[: order + 2]).max(0)
            assert not off.any(), f"order {order} at {x[off]}: {found[off]}, not {row[off]}"
