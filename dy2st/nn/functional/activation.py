"""Activation functions, element by element; in-place forms have a name that ends in an underscore."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import floating, one_axis, op, ordered_floating, tensor
from dy2st.functions.inplace import in_place_form
from dy2st.functions.math import math
from dy2st.functions.math.random import uniform
from dy2st.missing import missing_in
from dy2st.nn.functional.piecewise import piecewise
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_RELU, _SILU, _SOFTPLUS, _GELU, _LOG_SIGMOID = (op(n) for n in ("relu", "silu", "softplus", "gelu", "log_sigmoid"))


def relu(x: Any, name: str | None = None) -> Tensor:
    """Return max(x, 0).

    >>> import dy2st as paddle
    >>> paddle.nn.functional.relu(paddle.to_tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return apply(_RELU, tensor(x, "relu"))


@composite
def relu6(x: Any, name: str | None = None) -> Tensor:
    """Return min(max(x, 0), 6)."""
    return math.clip(ordered_floating(x, "relu6"), 0.0, 6.0)


@composite
def leaky_relu(x: Any, negative_slope: float = 0.01, name: str | None = None) -> Tensor:
    """Return x where it is not negative, else negative_slope * x; the derivative at 0 is 1, as Paddle's."""
    x = ordered_floating(x, "leaky_relu")
    return piecewise(x >= 0, x, x * negative_slope)


@composite
def prelu(x: Any, weight: Tensor, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Return x where it is positive, else weight * x; `weight` has one element, or one for each channel."""
    x = ordered_floating(x, "prelu")
    count = weight.shape[0] if weight.ndim else 1
    if count != 1:
        axis = x.ndim - 1 if data_format.endswith("C") and len(data_format) > 2 else 1
        shape = [1] * x.ndim
        shape[axis] = count
        if isinstance(x.shape[axis], int) and x.shape[axis] != count:
            raise ValueError(
                f"prelu: {count} weights for a tensor of {x.shape[axis]} channels (data_format {data_format})"
            )
        weight = weight.reshape(shape)
    return piecewise(x > 0, x, x * weight)


def rrelu(
    x: Any, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, training: bool = True, name: str | None = None
) -> Tensor:
    """Return x where it is positive, else a * x, with a uniform in [lower, upper) in training and its mean else."""
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"rrelu: 0 <= lower <= upper <= 1 must hold, not lower={lower}, upper={upper}")
    x = ordered_floating(x, "rrelu")
    slope: Any = uniform(x.shape, x.dtype, min=lower, max=upper) if training else (lower + upper) / 2.0
    return piecewise(x > 0, x, x * slope)


@composite
def elu(x: Any, alpha: float = 1.0, name: str | None = None) -> Tensor:
    """Return x where it is positive, else alpha * (e^x - 1)."""
    x = ordered_floating(x, "elu")
    positive = x > 0
    return piecewise(positive, x, math.expm1(piecewise(positive, 0.0, x)) * alpha)


@composite
def celu(x: Any, alpha: float = 1.0, name: str | None = None) -> Tensor:
    """Return x where it is positive, else alpha * (e^(x / alpha) - 1)."""
    if alpha == 0:
        raise ZeroDivisionError("celu: alpha cannot be 0")
    x = ordered_floating(x, "celu")
    positive = x > 0
    return piecewise(positive, x, math.expm1(piecewise(positive, 0.0, x) / alpha) * alpha)


@composite
def selu(
    x: Any, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: str | None = None
) -> Tensor:
    """Return scale * x where x is positive, else scale * alpha * (e^x - 1) (Klambauer et al., 2017)."""
    if scale <= 1.0:
        raise ValueError(f"selu: scale must be above 1, not {scale}")
    if alpha < 0:
        raise ValueError(f"selu: alpha must not be negative, not {alpha}")
    return elu(x, alpha) * scale


def gelu(x: Any, approximate: str | bool = False, name: str | None = None) -> Tensor:
    """Return x * P(X <= x) for a standard normal X; by a formula with tanh where `approximate` is True or "tanh"."""
    if approximate not in (True, False, "tanh", "none"):
        raise ValueError(f"gelu: approximate must be True, False, 'tanh' or 'none', not {approximate!r}")
    return apply(_GELU, floating(x, "gelu"), approximate=approximate in (True, "tanh"))


def silu(x: Any, inplace: bool = False, name: str | None = None) -> Tensor:
    """Return x * sigmoid(x)."""
    return _SILU_IN_PLACE(x) if inplace else apply(_SILU, floating(x, "silu"))


_SILU_IN_PLACE = in_place_form(silu, "silu")


def swish(x: Any, name: str | None = None) -> Tensor:
    """Return x * sigmoid(x)."""
    return silu(x)


@composite
def mish(x: Any, name: str | None = None) -> Tensor:
    """Return x * tanh(softplus(x))."""
    x = ordered_floating(x, "mish")
    return x * math.tanh(softplus(x))


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0, name: str | None = None) -> Tensor:
    """Return log(1 + e^(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    return apply(_SOFTPLUS, floating(x, "softplus"), beta=float(beta), threshold=float(threshold))


def sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Return 1 / (1 + e^-x)."""
    return math.sigmoid(x)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Return log(1 / (1 + e^-x))."""
    return apply(_LOG_SIGMOID, floating(x, "log_sigmoid"))


def tanh(x: Any, name: str | None = None) -> Tensor:
    """Return the hyperbolic tangent."""
    return math.tanh(x)


@composite
def hardsigmoid(x: Any, slope: float = 0.1666667, offset: float = 0.5, name: str | None = None) -> Tensor:
    """Return slope * x + offset, kept between 0 and 1."""
    return math.clip(ordered_floating(x, "hardsigmoid") * slope + offset, 0.0, 1.0)


@composite
def hardswish(x: Any, name: str | None = None) -> Tensor:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    x = ordered_floating(x, "hardswish")
    return x * math.clip(x + 3.0, 0.0, 6.0) / 6.0


@composite
def hardtanh(x: Any, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Tensor:
    """Return x kept between min and max."""
    return math.clip(ordered_floating(x, "hardtanh"), min, max)


@composite
def hardshrink(x: Any, threshold: float = 0.5, name: str | None = None) -> Tensor:
    """Return x where |x| is above the threshold, else 0."""
    x = ordered_floating(x, "hardshrink")
    return piecewise(math.abs(x) > threshold, x, 0.0)


@composite
def softshrink(x: Any, threshold: float = 0.5, name: str | None = None) -> Tensor:
    """Return x pulled to 0 by the threshold, 0 where |x| is below it."""
    if threshold < 0:
        raise ValueError(f"softshrink: the threshold must not be negative, not {threshold}")
    x = ordered_floating(x, "softshrink")
    return piecewise(x > threshold, x - threshold, piecewise(x < -threshold, x + threshold, 0.0))


@composite
def tanhshrink(x: Any, name: str | None = None) -> Tensor:
    """Return x - tanh(x)."""
    x = floating(x, "tanhshrink")
    return x - math.tanh(x)


@composite
def softsign(x: Any, name: str | None = None) -> Tensor:
    """Return x / (1 + |x|)."""
    x = floating(x, "softsign")
    return x / (math.abs(x) + 1.0)


@composite
def thresholded_relu(x: Any, threshold: float = 1.0, value: float = 0.0, name: str | None = None) -> Tensor:
    """Return x where it is above the threshold, else `value`."""
    x = ordered_floating(x, "thresholded_relu")
    return piecewise(x > threshold, x, float(value))


@composite
def maxout(x: Any, groups: int, axis: int = 1, name: str | None = None) -> Tensor:
    """Return the maximum over groups of `groups` neighbouring channels (Goodfellow et al., 2013)."""
    x = floating(x, "maxout")
    axis = one_axis(axis, x.ndim, "maxout")
    channels = x.shape[axis]
    if isinstance(channels, int) and channels % groups:
        raise ValueError(f"maxout: {channels} channels do not divide into groups of {groups}")
    shape = x.shape
    return x.reshape([*shape[:axis], channels // groups, groups, *shape[axis + 1 :]]).max(axis + 1)


@composite
def glu(x: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Return a * sigmoid(b), where a and b are the halves of x along the axis (Dauphin et al., 2017)."""
    x = floating(x, "glu")
    axis = one_axis(axis, x.ndim, "glu")
    if isinstance(x.shape[axis], int) and x.shape[axis] % 2:
        raise ValueError(f"glu: an extent of {x.shape[axis]} along axis {axis} has no halves")
    a, b = x.chunk(2, axis)
    return a * math.sigmoid(b)


@composite
def swiglu(x: Any, y: Any = None, name: str | None = None) -> Tensor:
    """Return silu(x) * y; without y the last axis of x is split in halves."""
    if y is None:
        x, y = tensor(x, "swiglu").chunk(2, -1)
    return silu(x) * y


relu_, elu_, leaky_relu_, hardtanh_, tanh_, thresholded_relu_ = (
    in_place_form(f, f.__name__) for f in (relu, elu, leaky_relu, hardtanh, tanh, thresholded_relu)
)
logsigmoid = log_sigmoid


__getattr__ = missing_in(__name__, "dy2st.nn.functional")
