"""Distributions that are made of gamma numbers: Gamma, Chi2, Beta, Dirichlet, StudentT."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution, parameters
from dy2st.distribution.exponential_family import ExponentialFamily
from dy2st.distribution.gamma_draws import gamma_draws
from dy2st.functions.core.operands import floating
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random import standard_normal
from dy2st.functions.shape.broadcasting import broadcast_to
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.creation import full_like
from dy2st.runtime.eager.tensor import Tensor


class Gamma(ExponentialFamily):
    """The gamma distribution.

    Parameters
    ----------
    concentration, rate
        The shape and the rate, positive numbers or tensors that broadcast.

    Draws are differentiable by both, which Paddle's are by the rate alone.

    >>> import dy2st as paddle
    >>> gamma = paddle.distribution.Gamma(2.0, 4.0)
    >>> gamma.mean.item(), gamma.variance.item()
    (0.5, 0.125)
    """

    def __init__(self, concentration: Any, rate: Any):
        self.concentration, self.rate = parameters(concentration, rate, name=type(self).__name__)
        super().__init__(self.concentration.shape)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / math.square(self.rate)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return gamma_draws(broadcast_to(self.concentration, self._shape(shape))) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        a, b = self.concentration, self.rate
        value = floating(value, "log_prob")
        return a * math.log(b) + (a - 1.0) * math.log(value) - b * value - math.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - math.log(self.rate) + math.lgamma(a) + (1.0 - a) * math.digamma(a)

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        return self.concentration - 1.0, -self.rate

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        shape, rate = natural[0] + 1.0, -natural[1]
        return math.lgamma(shape) - shape * math.log(rate)


class Chi2(Gamma):
    """The distribution of the sum of `df` squared standard normal numbers.

    >>> import dy2st as paddle
    >>> paddle.distribution.Chi2(3.0).mean.item()
    3.0
    """

    def __init__(self, df: Any):
        (self.df,) = parameters(df, name="Chi2")
        super().__init__(self.df * 0.5, full_like(self.df, 0.5))


class Dirichlet(ExponentialFamily):
    """The distribution of Dirichlet: shares that add up to 1, along the last axis of `concentration`.

    Raises ValueError for a concentration without axes or without elements.

    >>> import dy2st as paddle
    >>> paddle.distribution.Dirichlet(paddle.to_tensor([1.0, 3.0])).mean.tolist()
    [0.25, 0.75]
    """

    def __init__(self, concentration: Any):
        self.concentration = floating(concentration, "Dirichlet")
        if not self.concentration.ndim or 0 in self.concentration.shape:
            raise ValueError("Dirichlet needs a concentration of at least one axis, with elements")
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.concentration / reduction.sum(self.concentration, -1, keepdim=True)

    @property
    def variance(self) -> Tensor:
        total = reduction.sum(self.concentration, -1, keepdim=True)
        return self.concentration * (total - self.concentration) / (math.square(total) * (total + 1.0))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        drawn = gamma_draws(broadcast_to(self.concentration, self._shape(shape)))
        return drawn / reduction.sum(drawn, -1, keepdim=True)

    def log_prob(self, value: Any) -> Tensor:
        a = self.concentration
        logs = reduction.sum((a - 1.0) * math.log(value), -1)
        return logs + math.lgamma(reduction.sum(a, -1)) - reduction.sum(math.lgamma(a), -1)

    def entropy(self) -> Tensor:
        a = self.concentration
        total = reduction.sum(a, -1)
        known = reduction.sum(math.lgamma(a), -1) - math.lgamma(total)
        spread = (total - a.shape[-1]) * math.digamma(total)
        return known + spread - reduction.sum((a - 1.0) * math.digamma(a), -1)

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        return reduction.sum(math.lgamma(natural[0]), -1) - math.lgamma(reduction.sum(natural[0], -1))


class Beta(ExponentialFamily):
    """The beta distribution of numbers between 0 and 1, of `alpha` and `beta`, which broadcast.

    >>> import dy2st as paddle
    >>> paddle.distribution.Beta(1.0, 3.0).mean.item()
    0.25
    """

    def __init__(self, alpha: Any, beta: Any):
        self.alpha, self.beta = parameters(alpha, beta, name="Beta")
        super().__init__(self.alpha.shape)

    @property
    def mean(self) -> Tensor:
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Tensor:
        total = self.alpha + self.beta
        return self.alpha * self.beta / (math.square(total) * (total + 1.0))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        both = stack([self.alpha, self.beta], 0)
        drawn = gamma_draws(broadcast_to(_after_first(both, len(shape)), [2, *self._shape(shape)]))
        return drawn[0] / (drawn[0] + drawn[1])

    def log_prob(self, value: Any) -> Tensor:
        value = floating(value, "log_prob")
        a, b = self.alpha, self.beta
        return (a - 1.0) * math.log(value) + (b - 1.0) * math.log1p(-value) - log_beta(a, b)

    def entropy(self) -> Tensor:
        a, b = self.alpha, self.beta
        spread = (a + b - 2.0) * math.digamma(a + b)
        return log_beta(a, b) - (a - 1.0) * math.digamma(a) - (b - 1.0) * math.digamma(b) + spread

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        return self.alpha, self.beta

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        return log_beta(*natural)


class StudentT(Distribution):
    """Student's distribution of `df` degrees of freedom around `loc`, as wide as `scale`; all three broadcast.

    Without a mean (`df` up to 1) `mean` is NaN, and so is `variance`, which is infinite for `df` up to 2.

    >>> import dy2st as paddle
    >>> paddle.distribution.StudentT(4.0, 1.0, 1.0).variance.item()
    2.0
    """

    def __init__(self, df: Any, loc: Any, scale: Any, name: str | None = None):
        self.df, self.loc, self.scale = parameters(df, loc, scale, name="StudentT")
        self.name = "StudentT" if name is None else name
        super().__init__(self.df.shape)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1.0, self.loc, float("nan"))

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2.0
        df = where(finite, self.df, 3.0)
        wide = where(self.df > 1.0, full_like(self.df, float("inf")), float("nan"))
        return where(finite, math.square(self.scale) * df / (df - 2.0), wide)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        extents = self._shape(shape)
        normal = standard_normal(extents, self.loc.dtype)
        half = self.df * 0.5
        return self.loc + self.scale * normal * math.sqrt(half / gamma_draws(broadcast_to(half, extents)))

    def log_prob(self, value: Any) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * math.log1p(math.square(z) / self.df) - self._log_width()

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1.0)
        return more * (math.digamma(more) - math.digamma(half)) + self._log_width()

    def _log_width(self) -> Tensor:
        """Return how much the density at `loc` is below 1, as a logarithm."""
        half = 0.5 * self.df
        width = math.log(self.scale) + 0.5 * (math.log(self.df) + numbers.log(numbers.pi))
        return width + math.lgamma(half) - math.lgamma(half + 0.5)


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """Return the logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _after_first(x: Tensor, count: int) -> Tensor:
    """Return x with `count` axes of extent 1 after its first."""
    return x.unsqueeze(list(range(1, count + 1))) if count else x
