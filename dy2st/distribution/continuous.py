"""Distributions of real numbers."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution, parameters
from dy2st.functions.math import math
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random import rand, standard_normal
from dy2st.ir.context import replaced
from dy2st.runtime.eager.tensor import Tensor

_EULER = 0.5772156649015329


class Normal(Distribution):
    """The normal distribution.

    Parameters
    ----------
    loc, scale
        The mean and the standard deviation, numbers or tensors that broadcast.

    >>> import dy2st as paddle
    >>> round(paddle.distribution.Normal(0.0, 1.0).log_prob(paddle.to_tensor(0.0)).item(), 4)
    -0.9189
    """

    def __init__(self, loc: Any, scale: Any, name: str | None = None):
        self.loc, self.scale = parameters(loc, scale, name="Normal")
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return math.square(self.scale)

    def sample(self, shape: Sequence[int] = (), seed: int = 0) -> Tensor:
        with replaced(grad=False):
            return self.rsample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * standard_normal(self._shape(shape), self.loc.dtype)

    def log_prob(self, value: Any) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * math.square(z) - math.log(self.scale) - 0.5 * numbers.log(2 * numbers.pi)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * numbers.log(2 * numbers.pi) + math.log(self.scale)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        return 0.5 * (1.0 + math.erf((value - self.loc) / (self.scale * numbers.sqrt(2))))


class LogNormal(Normal):
    """The distribution of e to the power of normal numbers of this mean and standard deviation."""

    @property
    def mean(self) -> Tensor:
        return math.exp(self.loc + math.square(self.scale) / 2)

    @property
    def variance(self) -> Tensor:
        return math.expm1(math.square(self.scale)) * math.exp(2 * self.loc + math.square(self.scale))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return math.exp(super().rsample(shape))

    def log_prob(self, value: Any) -> Tensor:
        logs = math.log(value)
        return super().log_prob(logs) - logs

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc

    def cdf(self, value: Any) -> Tensor:
        return super().cdf(math.log(value))


class Uniform(Distribution):
    """The uniform distribution from `low` to `high`, numbers or tensors that broadcast."""

    def __init__(self, low: Any, high: Any, name: str | None = None):
        self.low, self.high = parameters(low, high, name="Uniform")
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return math.square(self.high - self.low) / 12

    def sample(self, shape: Sequence[int] = (), seed: int = 0) -> Tensor:
        with replaced(grad=False):
            return self.rsample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return self.low + (self.high - self.low) * rand(self._shape(shape), self.low.dtype)

    def log_prob(self, value: Any) -> Tensor:
        inside = (value > self.low) & (value < self.high)
        return where(inside, -math.log(self.high - self.low), -float("inf"))

    def entropy(self) -> Tensor:
        return math.log(self.high - self.low)


class Exponential(Distribution):
    """The exponential distribution of a `rate`."""

    def __init__(self, rate: Any):
        (self.rate,) = parameters(rate, name="Exponential")
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.rate

    @property
    def variance(self) -> Tensor:
        return 1.0 / math.square(self.rate)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return -math.log(self._uniform(shape, self.rate)) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        return math.log(self.rate) - self.rate * value

    def entropy(self) -> Tensor:
        return 1.0 - math.log(self.rate)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        return -math.expm1(-self.rate * value)


class _Located(Distribution):
    """A distribution of numbers around `loc`, as wide as `scale`."""

    def __init__(self, loc: Any, scale: Any, name: str | None = None):
        self.loc, self.scale = parameters(loc, scale, name=type(self).__name__)
        super().__init__(self.loc.shape)

    def _standard(self, value: Any) -> Tensor:
        return (value - self.loc) / self.scale


class Laplace(_Located):
    """The distribution of Laplace, of mean `loc` and scale `scale`."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * math.square(self.scale)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        u = self._uniform(shape, self.loc) - 0.5
        return self.loc - self.scale * math.sign(u) * math.log1p(-2 * math.abs(u))

    def log_prob(self, value: Any) -> Tensor:
        return -math.abs(self._standard(value)) - math.log(2 * self.scale)

    def entropy(self) -> Tensor:
        return 1.0 + math.log(2 * self.scale)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        z = self._standard(value)
        return 0.5 - 0.5 * math.sign(z) * math.expm1(-math.abs(z))


class Gumbel(_Located):
    """The distribution of Gumbel, of location `loc` and scale `scale`."""

    @property
    def mean(self) -> Tensor:
        return self.loc + _EULER * self.scale

    @property
    def variance(self) -> Tensor:
        return math.square(self.scale) * (numbers.pi**2 / 6)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return self.loc - self.scale * math.log(-math.log(self._uniform(shape, self.loc)))

    def log_prob(self, value: Any) -> Tensor:
        z = self._standard(value)
        return -(z + math.exp(-z)) - math.log(self.scale)

    def entropy(self) -> Tensor:
        return math.log(self.scale) + (1.0 + _EULER)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        return math.exp(-math.exp(-self._standard(value)))


class Cauchy(_Located):
    """The distribution of Cauchy, of location `loc` and scale `scale`; it has no mean and no variance."""

    def rsample(self, shape: Sequence[int] = (), name: str | None = None) -> Tensor:
        return self.loc + self.scale * math.tan(numbers.pi * (self._uniform(shape, self.loc) - 0.5))

    def log_prob(self, value: Any) -> Tensor:
        return -math.log1p(math.square(self._standard(value))) - math.log(self.scale * numbers.pi)

    def entropy(self) -> Tensor:
        return math.log(4 * numbers.pi * self.scale)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        return math.atan(self._standard(value)) / numbers.pi + 0.5
