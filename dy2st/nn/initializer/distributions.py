"""Initial values drawn from a distribution with given parameters, by the default generator."""

from __future__ import annotations

import math

from dy2st.dtypes import DType
from dy2st.functions.math.random import standard_normal, uniform
from dy2st.nn.initializer.base import Initializer
from dy2st.runtime.eager.tensor import Tensor


class Uniform(Initializer):
    """Uniform on [low, high)."""

    draws_once = True

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None):
        if high < low:
            raise ValueError(f"Uniform: low must not be above high, not {low} and {high}")
        self._low, self._high = float(low), float(high)

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        return uniform(list(shape), dtype, min=self._low, max=self._high)


class Normal(Initializer):
    """Normal with this mean and standard deviation."""

    draws_once = True

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None):
        self._mean, self._std = float(mean), float(std)

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        return standard_normal(list(shape), dtype) * self._std + self._mean


class TruncatedNormal(Initializer):
    """Normal with this mean and standard deviation, kept between a and b.

    Drawn through the inverse of the distribution function: mean + std * sqrt(2) * erfinv(2u - 1), with u uniform
    between the values of the distribution function at a and b.
    """

    draws_once = True

    def __init__(self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, name: str | None = None):
        if not a < b:
            raise ValueError(f"TruncatedNormal: a must be below b, not {a} and {b}")
        self._mean, self._std, self._a, self._b = float(mean), float(std), float(a), float(b)

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        low, high = (math.erf((edge - self._mean) / (self._std * math.sqrt(2.0))) for edge in (self._a, self._b))
        drawn = uniform(list(shape), dtype, min=low, max=high).erfinv() * (self._std * math.sqrt(2.0)) + self._mean
        return drawn.clip(self._a, self._b)
