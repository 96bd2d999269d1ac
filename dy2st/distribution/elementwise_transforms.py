"""Transforms of each number by itself."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from dy2st.distribution.transforms import Transform, logarithm_of_size
from dy2st.functions.math import math
from dy2st.functions.shape.broadcasting import broadcast_shape
from dy2st.functions.shape.creation import zeros
from dy2st.nn.functional.activation import log_sigmoid, softplus
from dy2st.runtime.eager.tensor import Tensor


class AbsTransform(Transform):
    """y = |x|; `inverse` returns both numbers that become y, the negative one first.

    >>> import dy2st as paddle
    >>> [x.item() for x in paddle.distribution.AbsTransform().inverse(paddle.to_tensor(2.0))]
    [-2.0, 2.0]
    """

    injective = False

    def _forward(self, x: Tensor) -> Tensor:
        return math.abs(x)

    def _inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return zeros([], y.dtype), zeros([], y.dtype)


class AffineTransform(Transform):
    """y = loc + scale * x, for tensors `loc` and `scale`.

    >>> import dy2st as paddle
    >>> paddle.distribution.AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor(2.0))(paddle.to_tensor(3.0)).item()
    7.0
    """

    def __init__(self, loc: Tensor, scale: Tensor):
        self._loc, self._scale = _tensor(loc, "AffineTransform"), _tensor(scale, "AffineTransform")

    @property
    def loc(self) -> Tensor:
        """What is added."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """What numbers are multiplied by."""
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        return self._loc + self._scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return logarithm_of_size(self._scale)

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return tuple(broadcast_shape(broadcast_shape(shape, self._loc.shape), self._scale.shape))

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return self._forward_shape(shape)


class ExpTransform(Transform):
    """y = e^x."""

    def _forward(self, x: Tensor) -> Tensor:
        return math.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return math.log(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^power for positive x, `power` being a tensor.

    >>> import dy2st as paddle
    >>> paddle.distribution.PowerTransform(paddle.to_tensor(2.0)).inverse(paddle.to_tensor(9.0)).item()
    3.0
    """

    def __init__(self, power: Tensor):
        self._power = _tensor(power, "PowerTransform")

    @property
    def power(self) -> Tensor:
        """The power that numbers are raised to."""
        return self._power

    def _forward(self, x: Tensor) -> Tensor:
        return x**self._power

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1.0 / self._power)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return logarithm_of_size(self._power * x ** (self._power - 1.0))

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return tuple(broadcast_shape(shape, self._power.shape))

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return self._forward_shape(shape)


class SigmoidTransform(Transform):
    """y = 1 / (1 + e^-x)."""

    def _forward(self, x: Tensor) -> Tensor:
        return math.sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return math.log(y) - math.log1p(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return log_sigmoid(x) + log_sigmoid(-x)


class TanhTransform(Transform):
    """y = tanh x."""

    def _forward(self, x: Tensor) -> Tensor:
        return math.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return math.atanh(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return 2.0 * (numbers.log(2.0) - x - softplus(-2.0 * x))


def _tensor(x: Any, name: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} needs a Tensor, not {type(x).__name__}")
    return x
