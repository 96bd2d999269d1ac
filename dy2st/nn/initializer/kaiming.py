"""Initial values that keep variances through rectified layers.

He et al., "Delving deep into rectifiers", 2015.
"""

from __future__ import annotations

import math

from dy2st.dtypes import DType
from dy2st.nn.initializer.base import Initializer, fans
from dy2st.nn.initializer.distributions import Normal, Uniform
from dy2st.nn.initializer.gain import calculate_gain
from dy2st.runtime.eager.tensor import Tensor


class _Kaiming(Initializer):
    draws_once = True

    def __init__(
        self,
        fan_in: float | None = None,
        negative_slope: float = 0.0,
        nonlinearity: str = "relu",
        mode: str = "fan_in",
    ):
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(f"{type(self).__name__}: mode must be 'fan_in' or 'fan_out', not {mode!r}")
        self._fan_in, self._negative_slope, self._nonlinearity = fan_in, negative_slope, nonlinearity
        self._mode = mode

    def _std(self, shape: tuple[int, ...]) -> float:
        fan = fans(shape)[0 if self._mode == "fan_in" else 1] if self._fan_in is None else self._fan_in
        gain = calculate_gain(self._nonlinearity, self._negative_slope)
        return gain / math.sqrt(float(fan)) if fan else 0.0


class KaimingUniform(_Kaiming):
    """Uniform on [-l, l) with l = gain * sqrt(3 / fan)."""

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        limit = math.sqrt(3.0) * self._std(shape)
        return Uniform(-limit, limit).value(shape, dtype)


class KaimingNormal(_Kaiming):
    """Normal with standard deviation gain / sqrt(fan)."""

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        return Normal(0.0, self._std(shape)).value(shape, dtype)
