"""Elementwise mathematics: exponentials, trigonometry, rounding, bounds; arithmetic is in `arithmetic.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.functions.core.assigning import clone, detach
from dy2st.functions.core.assigning import into as _into
from dy2st.functions.core.defaults import finfo as _finfo
from dy2st.functions.core.operands import (
    NUMBERS,
    binary,
    cast_to,
    floating,
    kind_of,
    number,
    op,
    ordered,
    ordered_floating,
    pair,
    tensor,
)
from dy2st.functions.math.arithmetic import counted, trunc
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_MAXIMUM, _MINIMUM, _WHERE = op("maximum"), op("minimum"), op("where")


# ---- functions of one operand ----------------------------------------------------------------------------------------
def _float_function(called: str, sentence: str, op_name: str | None = None) -> Callable[..., Tensor]:
    """Make a function of float tensors; integers are cast to the default float."""
    made = op(op_name or called)

    def function(x: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return _into(out, apply(made, floating(x, called)))

    return _named(function, called, f"Return {sentence}; integers are computed in the default float.")


def _function(called: str, sentence: str, op_name: str | None = None) -> Callable[..., Tensor]:
    """Make a function that keeps the dtype."""
    made = op(op_name or called)

    def function(x: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return _into(out, apply(made, tensor(x, called)))

    return _named(function, called, f"Return {sentence}.")


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _float_function("exp", "e ** x")
expm1 = _float_function("expm1", "e ** x - 1, exact near 0")
log = _float_function("log", "the natural logarithm")
log2 = _float_function("log2", "the logarithm to base 2")
log10 = _float_function("log10", "the logarithm to base 10")
log1p = _float_function("log1p", "log(1 + x), exact near 0")
sqrt = _float_function("sqrt", "the square root, NaN below 0")
rsqrt = _float_function("rsqrt", "1 / sqrt(x)")
reciprocal = _float_function("reciprocal", "1 / x")
sin = _float_function("sin", "the sine")
cos = _float_function("cos", "the cosine")
tan = _float_function("tan", "the tangent")
asin = _float_function("asin", "the angle whose sine is x")
acos = _float_function("acos", "the angle whose cosine is x")
atan = _float_function("atan", "the angle whose tangent is x")
sinh = _float_function("sinh", "the hyperbolic sine")
cosh = _float_function("cosh", "the hyperbolic cosine")
tanh = _float_function("tanh", "the hyperbolic tangent")
asinh = _float_function("asinh", "the inverse hyperbolic sine")
acosh = _float_function("acosh", "the inverse hyperbolic cosine")
atanh = _float_function("atanh", "the inverse hyperbolic tangent")
erf = _float_function("erf", "the error function")
erfinv = _float_function("erfinv", "the inverse of the error function")
lgamma = _float_function("lgamma", "the logarithm of the absolute value of the gamma function")
gammaln = _float_function("gammaln", "the logarithm of the absolute value of the gamma function", "lgamma")
digamma = _float_function("digamma", "the derivative of lgamma")
sigmoid = _float_function("sigmoid", "1 / (1 + e ** -x)")
i0e = _float_function("i0e", "the modified Bessel function of order 0 times e ** -|x|")
i1e = _float_function("i1e", "the modified Bessel function of order 1 times e ** -|x|")
square = _function("square", "x * x")
sign = _function("sign", "-1, 0 or 1 by the sign of x")
sgn = _function("sgn", "-1, 0 or 1 by the sign of x", "sign")
floor = _function("floor", "the largest whole number that is not above x")
ceil = _function("ceil", "the smallest whole number that is not below x")


def abs(x: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the absolute value.

    >>> import dy2st as paddle
    >>> paddle.abs(paddle.to_tensor([-1.5, 2.0])).tolist()
    [1.5, 2.0]
    """
    return _into(out, apply(_ABS, counted(tensor(x, "abs"))))


_ABS, _RINT, _ROUND = op("abs"), op("rint"), op("round")


def round(x: Any, decimals: int = 0, name: str | None = None) -> Tensor:
    """Return x rounded to this many decimals, halves to the even one, as PaddlePaddle 3.3 and NumPy do.

    >>> import dy2st as paddle
    >>> paddle.round(paddle.to_tensor([-0.5, -0.2, 0.6, 1.5, 2.5])).tolist()
    [-0.0, -0.0, 1.0, 2.0, 2.0]
    """
    x = tensor(x, "round")
    if not decimals:
        return apply(_RINT, x)
    scale = 10.0**decimals
    return cast_to(apply(_RINT, x * scale) / scale, x.dtype)


def round_half_away(x: Tensor) -> Tensor:
    """Return x rounded, halves away from zero: C's round, which PaddlePaddle's regions and quantized weights are of."""
    return apply(_ROUND, x)


def frac(x: Any, name: str | None = None) -> Tensor:
    """Return x - trunc(x)."""
    x = tensor(x, "frac")
    return x - trunc(x)


def rad2deg(x: Any, name: str | None = None) -> Tensor:
    """Return angles in degrees."""
    return floating(x, "rad2deg") * (180.0 / 3.141592653589793)


def deg2rad(x: Any, name: str | None = None) -> Tensor:
    """Return angles in radians."""
    return floating(x, "deg2rad") * (3.141592653589793 / 180.0)


def scale(
    x: Any, scale: Any = 1.0, bias: Any = 0.0, bias_after_scale: bool = True, act: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return scale * x + bias, or scale * (x + bias), in the dtype of x.

    >>> import dy2st as paddle
    >>> paddle.scale(paddle.to_tensor([1.0, 2.0]), scale=2.0, bias=1.0).tolist()
    [3.0, 5.0]
    """
    x = tensor(x, "scale")
    result = x * scale + bias if bias_after_scale else (x + bias) * scale
    result = cast_to(result, x.dtype)
    if act is None:
        return result
    known = {"tanh": tanh, "sigmoid": sigmoid, "relu": lambda y: apply(op("relu"), y), "exp": exp}
    if act not in known:
        raise ValueError(f"scale: act is {act!r}, not None or one of {', '.join(known)}")
    return known[act](result)


def stanh(x: Any, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Tensor:
    """Return scale_b * tanh(scale_a * x)."""
    return tanh(floating(x, "stanh") * scale_a) * scale_b


def logit(x: Any, eps: float | None = None, name: str | None = None) -> Tensor:
    """Return log(x / (1 - x)), x brought into [eps, 1 - eps] first when eps is given."""
    x = floating(x, "logit")
    x = x if eps is None else clip(x, eps, 1 - eps)
    return log(x / (1 - x))


# ---- functions of two operands ---------------------------------------------------------------------------------------
def _two(called: str, sentence: str, op_name: str | None = None, as_float: bool = False) -> Callable[..., Tensor]:
    made = op(op_name or called)

    def function(x: Any, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        x, y = pair(x, y, called)
        if as_float:
            x, y = floating(x, called), floating(y, called)
        return _into(out, apply(made, x, y))

    return _named(function, called, f"Return {sentence}, broadcast.")


maximum = _two("maximum", "the larger of x and y, NaN where one is")
minimum = _two("minimum", "the smaller of x and y, NaN where one is")
fmax = _two("fmax", "the larger of x and y, the number where the other is NaN")
fmin = _two("fmin", "the smaller of x and y, the number where the other is NaN")
atan2 = _two("atan2", "the angle of the point (y, x) from the positive axis", as_float=True)


def clip(x: Any, min: Any = None, max: Any = None, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return x with what is below `min` set to it and what is above `max` set to it.

    The dtype is that of x; integers that a float bounds become floats. The derivative at a bound is 1, as inside.

    >>> import dy2st as paddle
    >>> paddle.clip(paddle.to_tensor([-1.0, 0.5, 3.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return _into(out, _clipped(x, min, max))


@composite
def _clipped(x: Any, min: Any, max: Any) -> Tensor:
    x = ordered(x, "clip")
    if x.dtype.kind in "iu" and (_is_float(min) or _is_float(max)):
        x = floating(x, "clip")
    dtype = x.dtype
    for bound, made in ((min, _MAXIMUM), (max, _MINIMUM)):
        if bound is not None:
            x, limit = pair(x, bound, "clip")
            x = apply(made, limit, x)  # of two equal ones the derivative goes to the second
    return cast_to(x, dtype)


def _is_float(bound: Any) -> bool:
    return isinstance(bound, NUMBERS) and kind_of(bound) == "float"


clamp = clip


def lerp(x: Any, y: Any, weight: Any, name: str | None = None) -> Tensor:
    """Return x + weight * (y - x)."""
    x, y = pair(floating(x, "lerp"), y, "lerp")
    return x + (y - x) * weight


def hypot(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return sqrt(x * x + y * y) without overflow."""
    return apply(op("hypot"), *pair(floating(x, "hypot"), y, "hypot"))


def logaddexp(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return log(e ** x + e ** y) without overflow."""
    x, y = pair(ordered_floating(x, "logaddexp"), y, "logaddexp")
    distance = apply(_WHERE, x > y, x - y, y - x)  # not abs, whose slope at a tie is not that of the sum
    distance = apply(_WHERE, distance != distance, number(0.0, x.dtype, x), distance)  # of equal infinities
    return maximum(x, y) + log1p(exp(-distance))


def ldexp(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x * 2 ** y."""
    return floating(x, "ldexp") * exp2(floating(y, "ldexp"))


exp2 = _float_function("exp2", "2 ** x")


def heaviside(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return 0 where x is negative, y where it is 0, 1 where it is positive."""
    x, y = pair(x, y, "heaviside")
    step = apply(_WHERE, x != x, x, cast_to(x > 0, x.dtype))
    return apply(_WHERE, x == 0, y, step)


def copysign(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x with the sign of y."""
    x, y = pair(ordered_floating(x, "copysign"), y, "copysign")
    negative = (y < 0) | ((y == 0) & (reciprocal(y) < 0))
    magnitude = abs(x)
    return apply(_WHERE, negative, -magnitude, magnitude)


def nan_to_num(
    x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: str | None = None
) -> Tensor:
    """Return x with numbers in place of NaN, infinity (the largest number if None) and minus infinity.

    Of complex numbers each part is looked at on its own, as NumPy does.
    """
    x = tensor(x, "nan_to_num")
    if x.dtype.kind == "c":
        parts = (nan_to_num(apply(op(part), x), nan, posinf, neginf) for part in ("real", "imag"))
        return apply(op("complex"), *parts)
    if x.dtype.kind != "f":
        return clone(x)
    largest = float(_finfo(x.dtype).max)
    whole = apply(_WHERE, apply(op("isnan"), x), number(nan, x.dtype, x), x)
    above, below = largest if posinf is None else posinf, -largest if neginf is None else neginf
    bounded = apply(_WHERE, x == float("inf"), number(above, x.dtype, x), whole)
    return apply(_WHERE, x == -float("inf"), number(below, x.dtype, x), bounded)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + e ** (beta * x)) / beta, x itself where beta * x is above the threshold."""
    return apply(op("softplus"), floating(x, "softplus"), beta=float(beta), threshold=float(threshold))


def gammainc(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the lower incomplete gamma function at y, as a part of Gamma(x); NaN where one is negative.

    Gradients flow to y alone.

    >>> import dy2st as paddle
    >>> f"{paddle.gammainc(paddle.to_tensor(1.0), paddle.to_tensor(2.0)).item():.4f}"
    '0.8647'
    """
    return _incomplete("gammainc", x, y)


def gammaincc(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the upper incomplete gamma function at y, as a part of Gamma(x): 1 - gammainc(x, y)."""
    return _incomplete("gammaincc", x, y)


def _incomplete(name: str, x: Any, y: Any) -> Tensor:
    x, y = pair(floating(x, name), floating(y, name), name)
    return binary(op(name), detach(x), y, name)


def polygamma(x: Any, n: int, name: str | None = None) -> Tensor:
    """Return the derivative number n of digamma."""
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"polygamma: n must be an int that is not negative, not {n!r}")
    return digamma(x) if n == 0 else apply(op("polygamma"), floating(x, "polygamma"), n=n)


def i0(x: Any, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of order 0.

    >>> import dy2st as paddle
    >>> f"{paddle.i0(paddle.to_tensor(1.0)).item():.4f}"
    '1.2661'
    """
    x = ordered_floating(x, "i0")
    return i0e(x) * exp(abs(x))


def i1(x: Any, name: str | None = None) -> Tensor:
    """Return the modified Bessel function of order 1."""
    x = ordered_floating(x, "i1")
    return i1e(x) * exp(abs(x))


def frexp(x: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the mantissas, from 0.5 to 1 in size, and the exponents, as floats, with x = mantissa * 2 ** exponent."""
    x = floating(x, "frexp")
    nothing = (x == 0) | (x - x != 0)  # zeros, infinities and NaN are their own mantissas
    size = apply(_WHERE, nothing, number(1.0, x.dtype, x), abs(x))
    exponent = floor(log2(size)) + 1.0
    mantissa = size * exp2(-exponent)  # near 1 and 0.5 the logarithm may have been rounded to the other side
    exponent = exponent + cast_to(mantissa >= 1.0, x.dtype) - cast_to(mantissa < 0.5, x.dtype)
    zero = number(0.0, x.dtype, x)
    exponent = apply(_WHERE, nothing, zero, exponent)
    return apply(_WHERE, nothing, x, x * exp2(-exponent)), exponent
