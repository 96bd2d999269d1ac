"""ContinuousBernoulli: the density on [0, 1] in proportion to p^x (1 - p)^(1 - x)."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution, parameters
from dy2st.distribution.counts import times_log
from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math import math
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random import rand
from dy2st.runtime.eager.tensor import Tensor


class ContinuousBernoulli(Distribution):
    """The continuous Bernoulli distribution (G. Loaiza-Ganem and J. Cunningham, 2019).

    Parameters
    ----------
    probs
        Where the density leans to, in (0, 1); a number stands for a tensor of one element, as Paddle has it.
    lims
        Between these, where the formulas divide by nearly 0, series about 1/2 stand for them.

    >>> import dy2st as paddle
    >>> paddle.distribution.ContinuousBernoulli(paddle.to_tensor(0.5)).mean.item()
    0.5
    """

    def __init__(self, probs: Any, lims: tuple[float, float] = (0.499, 0.501)):
        (self.chance,) = parameters([probs] if isinstance(probs, (int, float)) else probs, name="ContinuousBernoulli")
        self.probs = self.chance  # type: ignore[assignment]
        self.lims = tuple(lims)
        super().__init__(self.chance.shape)

    @property
    def mean(self) -> Tensor:
        p, x = self._apart(), self.chance - 0.5
        exact = p / (2.0 * p - 1.0) + 1.0 / (math.log1p(-p) - math.log(p))
        return where(self._leans(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * math.square(x)) * x)

    @property
    def variance(self) -> Tensor:
        p, x = self._apart(), math.square(self.chance - 0.5)
        exact = p * (p - 1.0) / math.square(1.0 - 2.0 * p) + 1.0 / math.square(math.log1p(-p) - math.log(p))
        return where(self._leans(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._shape(shape), self.chance.dtype))

    def log_prob(self, value: Any) -> Tensor:
        value = cast_to(tensor(value, "log_prob"), self.chance.dtype)
        return self.log_constant() + times_log(value, self.chance) + times_log(1.0 - value, 1.0 - self.chance)

    def entropy(self) -> Tensor:
        p = self.chance
        return -self.log_constant() - self.mean * math.log(p) - (1.0 - self.mean) * math.log1p(-p)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        x = math.clip(cast_to(tensor(value, "cdf"), self.chance.dtype), 0.0, 1.0)
        odds, around = self._log_odds()
        near = x + x * (x - 1.0) * around * (0.5 + (2.0 * x - 1.0) * around / 12.0)
        return where(self._leans(), math.expm1(odds * x) / math.expm1(odds), near)

    def icdf(self, value: Any) -> Tensor:
        """Return what is not passed with this probability."""
        u = cast_to(tensor(value, "icdf"), self.chance.dtype)
        odds, around = self._log_odds()
        near = u + u * (u - 1.0) * around * ((2.0 * u - 1.0) * around / 6.0 - 0.5)
        return where(self._leans(), math.log1p(u * math.expm1(odds)) / odds, near)

    def log_constant(self) -> Tensor:
        """Return the logarithm of what the density is in proportion by."""
        p, x = self._apart(), math.square(self.chance - 0.5)
        exact = math.log(math.abs((math.log1p(-p) - math.log(p)) / (1.0 - 2.0 * p)))
        return where(self._leans(), exact, numbers.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    def _leans(self) -> Tensor:
        return (self.chance <= self.lims[0]) | (self.chance > self.lims[1])

    def _log_odds(self) -> tuple[Tensor, Tensor]:
        """Return log(p / (1 - p)), first as it is apart from 1/2, then as it is about 1/2."""
        p, x = self._apart(), self.chance - 0.5
        return math.log(p) - math.log1p(-p), 4.0 * x + 16.0 / 3.0 * x**3

    def _apart(self) -> Tensor:
        """Return `probs`, kept from 1/2, where the formulas have no value."""
        return where(self._leans(), self.chance, self.lims[0])
