"""Arithmetic of two tensors with 1.x's `axis` and `act`, and functions of one tensor that had other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math import arithmetic, comparison, math, reduction
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.activation import hardsigmoid
from dy2st.nn.layers.norm import activated
from dy2st.runtime.eager.tensor import Tensor


def _elementwise(name: str, function: Callable[[Any, Any], Any], meaning: str) -> Callable[..., Tensor]:
    def elementwise(x: Any, y: Any, axis: int = -1, act: str | None = None, name: str | None = None) -> Tensor:
        x, y = tensor(x, elementwise.__name__), tensor(y, elementwise.__name__)
        return activated(function(x, _beside(x, y, axis, elementwise.__name__)), act)

    elementwise.__name__ = elementwise.__qualname__ = name
    elementwise.__doc__ = f"Return {meaning}, y's axes beside those of x from `axis` on (-1: the last ones)."
    return elementwise


def _beside(x: Tensor, y: Tensor, axis: int, name: str) -> Tensor:
    """Return y with axes of 1 at its end, so that its first axis stands beside `axis` of x."""
    if axis == -1 or y.ndim >= x.ndim:
        return y
    behind = x.ndim - axis - y.ndim
    if axis < 0 or behind < 0:
        raise ValueError(f"{name}: axis {axis} leaves no room in {x.shape} for y of shape {y.shape}")
    return y if behind == 0 else reshape(y, [*y.shape, *[1] * behind])


def _divided(x: Tensor, y: Tensor) -> Tensor:
    """Divide; integers give integers, cut off towards zero."""
    if not (x.dtype.is_integer and y.dtype.is_integer):
        return arithmetic.divide(x, y)
    down = arithmetic.floor_divide(x, y)
    uneven = (x % y != 0) & ((x < 0) != (y < 0))
    return down + cast_to(uneven, down.dtype)


elementwise_add = _elementwise("elementwise_add", arithmetic.add, "x + y")
elementwise_sub = _elementwise("elementwise_sub", arithmetic.subtract, "x - y")
elementwise_mul = _elementwise("elementwise_mul", arithmetic.multiply, "x * y")
elementwise_div = _elementwise("elementwise_div", _divided, "x / y, of integers cut off towards zero")
elementwise_max = _elementwise("elementwise_max", math.maximum, "the larger of x and y")
elementwise_min = _elementwise("elementwise_min", math.minimum, "the smaller of x and y")
elementwise_pow = _elementwise("elementwise_pow", arithmetic.pow, "x to the power y")
elementwise_mod = _elementwise("elementwise_mod", arithmetic.mod, "the remainder of x by y")
elementwise_floordiv = _elementwise("elementwise_floordiv", arithmetic.floor_divide, "x // y")


def scale(
    x: Any, scale: Any = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return scale * x + bias, or scale * (x + bias) where not `bias_after_scale`."""
    return activated(math.scale(x, scale, bias, bias_after_scale), act)


def pow(x: Any, factor: Any = 1.0, name: str | None = None) -> Tensor:
    """Return x to the power `factor`."""
    return arithmetic.pow(x, factor)


def leaky_relu(x: Any, alpha: float = 0.02, name: str | None = None) -> Tensor:
    """Return x where it is positive, else alpha * x."""
    x = tensor(x, "leaky_relu")
    return math.maximum(x, 0.0) + math.minimum(x, 0.0) * alpha


def hard_sigmoid(x: Any, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Tensor:
    """Return slope * x + offset, kept between 0 and 1."""
    return hardsigmoid(x, slope, offset)


def sums(input: Any, out: Any = None) -> Tensor:
    """Return the sum of tensors of one shape."""
    return arithmetic.add_n(input)


def mean(x: Any, name: str | None = None) -> Tensor:
    """Return the mean of all elements.

    >>> import numpy as np, dy2st.fluid as fluid
    >>> float(fluid.layers.mean(np.array([1.0, 2.0])))
    1.5
    """
    return reduction.mean(x)


def clip_by_norm(x: Any, max_norm: float, name: str | None = None) -> Tensor:
    """Return x, scaled down to the norm `max_norm` where its norm is larger."""
    x = tensor(x, "clip_by_norm")
    norm = math.sqrt(reduction.sum(x * x))
    return x * (max_norm / math.maximum(norm, max_norm))


def has_nan(x: Any) -> Tensor:
    """Return whether any element is NaN."""
    return reduction.any(comparison.isnan(x))


def has_inf(x: Any) -> Tensor:
    """Return whether any element is infinite."""
    return reduction.any(comparison.isinf(x))
