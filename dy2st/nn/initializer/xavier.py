"""Initial values that keep variances through layers, by the mean of fan-in and fan-out.

Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
"""

from __future__ import annotations

import math

from dy2st.dtypes import DType
from dy2st.nn.initializer.base import Initializer, fans
from dy2st.nn.initializer.distributions import Normal, Uniform
from dy2st.runtime.eager.tensor import Tensor


class _Xavier(Initializer):
    draws_once = True

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, gain: float = 1.0, name: str | None = None
    ):
        self._fan_in, self._fan_out, self._gain = fan_in, fan_out, gain

    def _std(self, shape: tuple[int, ...]) -> float:
        fan_in, fan_out = fans(shape)
        fan_in = fan_in if self._fan_in is None else self._fan_in
        fan_out = fan_out if self._fan_out is None else self._fan_out
        return self._gain * math.sqrt(2.0 / float(fan_in + fan_out)) if fan_in + fan_out else 0.0


class XavierUniform(_Xavier):
    """Uniform on [-l, l) with l = gain * sqrt(6 / (fan_in + fan_out))."""

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        limit = math.sqrt(3.0) * self._std(shape)
        return Uniform(-limit, limit).value(shape, dtype)


class XavierNormal(_Xavier):
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        return Normal(0.0, self._std(shape)).value(shape, dtype)
