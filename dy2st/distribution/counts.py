"""Distributions of counts: Poisson, Binomial, Multinomial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution, parameters
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math import math, random_laws, reduction
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random import multinomial
from dy2st.functions.math.search import one_hot
from dy2st.functions.shape.broadcasting import broadcast_to
from dy2st.functions.shape.creation import arange
from dy2st.functions.shape.manipulation import moveaxis, reshape
from dy2st.ir.context import replaced
from dy2st.runtime.eager.tensor import Tensor


class Poisson(Distribution):
    """The distribution of Poisson: how often something happens that happens `rate` times on average.

    A number as `rate` stands for a tensor of one element, as Paddle has it.

    >>> import dy2st as paddle
    >>> round(paddle.distribution.Poisson(paddle.to_tensor(2.0)).prob(paddle.to_tensor(1.0)).item(), 4)
    0.2707
    """

    def __init__(self, rate: Any):
        (self.rate,) = parameters([rate] if isinstance(rate, (int, float)) else rate, name="Poisson")
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        with replaced(grad=False):
            return random_laws.poisson(broadcast_to(self.rate, self._shape(shape)))

    def log_prob(self, value: Any) -> Tensor:
        value = cast_to(tensor(value, "log_prob"), self.rate.dtype)
        return times_log(value, self.rate) - self.rate - math.lgamma(value + 1.0)

    def entropy(self) -> Tensor:
        """Return the entropy, summed over what is up to thirty standard deviations above the largest rate."""
        most = reduction.max(self.rate)
        count = reduction.max(math.ceil(most + 30.0 * math.sqrt(math.clip(most, 1.0)))).astype("int64").item()
        return entropy_of_counts(self, count)


class Binomial(Distribution):
    """How many of `total_count` trials succeed, each with the probability `probs`.

    >>> import dy2st as paddle
    >>> paddle.distribution.Binomial(4, 0.5).prob(paddle.to_tensor(2.0)).item()
    0.375
    """

    def __init__(self, total_count: Any, probs: Any):
        self.chance, self.total_count = parameters(probs, _as_float(total_count), name="Binomial")
        self.probs = self.chance  # type: ignore[assignment]
        super().__init__(self.chance.shape)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.chance

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.chance * (1.0 - self.chance)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        extents = self._shape(shape)
        with replaced(grad=False):
            drawn = random_laws.binomial(broadcast_to(self.total_count, extents), broadcast_to(self.chance, extents))
        return cast_to(drawn, self.chance.dtype)

    def log_prob(self, value: Any) -> Tensor:
        value = cast_to(tensor(value, "log_prob"), self.chance.dtype)
        n, p = self.total_count, self.chance
        ways = math.lgamma(n + 1.0) - math.lgamma(n - value + 1.0) - math.lgamma(value + 1.0)
        return ways + times_log(value, p) + times_log(n - value, 1.0 - p)

    def entropy(self) -> Tensor:
        return entropy_of_counts(self, self.support())

    def support(self) -> Any:
        """Return how many outcomes the largest `total_count` has."""
        return reduction.max(self.total_count).astype("int64").item() + 1


class Multinomial(Distribution):
    """How often each class comes up in `total_count` draws, of weights `probs` along the last axis.

    Raises ValueError for a count below 1 and for weights without an axis.

    >>> import dy2st as paddle
    >>> paddle.distribution.Multinomial(4, paddle.to_tensor([1.0, 3.0])).mean.tolist()
    [1.0, 3.0]
    """

    def __init__(self, total_count: int, probs: Any):
        if not isinstance(total_count, int) or total_count < 1:
            raise ValueError(f"Multinomial: total_count must be a positive int, not {total_count!r}")
        weights = floating(probs, "Multinomial")
        if not weights.ndim:
            raise ValueError("Multinomial needs an axis of classes, not a 0-D tensor")
        self.total_count = total_count
        self.chance = weights / reduction.sum(weights, -1, keepdim=True)
        self.probs = self.chance  # type: ignore[assignment]
        super().__init__(weights.shape[:-1], weights.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.chance * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.chance * (1.0 - self.chance)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        count: Any = self.total_count
        for extent in shape:
            count = count * extent
        rows = self.chance if self.chance.ndim == 1 else reshape(self.chance, [-1, self.chance.shape[-1]])
        with replaced(grad=False):
            drawn = reshape(moveaxis(multinomial(rows, count, replacement=True), -1, 0),
                            [self.total_count, *shape, *self._batch_shape])  # fmt: skip
            return cast_to(reduction.sum(one_hot(drawn, self.chance.shape[-1]), 0), self.chance.dtype)

    def log_prob(self, value: Any) -> Tensor:
        value = cast_to(tensor(value, "log_prob"), self.chance.dtype)
        ways = math.lgamma(reduction.sum(value, -1) + 1.0) - reduction.sum(math.lgamma(value + 1.0), -1)
        return ways + reduction.sum(times_log(value, self.chance), -1)

    def entropy(self) -> Tensor:
        n, p = self.total_count, self.chance
        counts = reshape(arange(1, n + 1, dtype=p.dtype), [-1, *([1] * p.ndim)])
        shares = math.exp(Binomial(n, p).log_prob(counts))
        spread = reduction.sum(reduction.sum(shares * math.lgamma(counts + 1.0), 0), -1)
        known = math.lgamma(floating(float(n + 1), "entropy").astype(p.dtype))
        return spread - known - n * reduction.sum(times_log(p, p), -1)


def times_log(count: Any, x: Tensor) -> Tensor:
    """Return count times log x, 0 where the count is."""
    none = count == 0
    return where(none, 0.0, count * math.log(where(none, 1.0, x)))


def counts_up_to(count: Any, distribution: Distribution, dtype: Any) -> Tensor:
    """Return the counts below a bound along a first axis, before those of the parameters."""
    return reshape(arange(count, dtype=dtype), [-1, *([1] * len(distribution.batch_shape))])


def entropy_of_counts(distribution: Any, count: Any) -> Tensor:
    """Return the entropy as the sum over the counts below a bound."""
    logs = distribution.log_prob(counts_up_to(count, distribution, distribution.mean.dtype))
    shares = math.exp(logs)
    return -reduction.sum(where(shares > 0.0, shares * where(shares > 0.0, logs, 0.0), 0.0), 0)


for _function in (counts_up_to, entropy_of_counts):  # they read a distribution, which the function may have set
    _function.__dy2st_convert__ = True  # type: ignore[attr-defined]


def _as_float(count: Any) -> Any:
    return float(count) if isinstance(count, int) else count
