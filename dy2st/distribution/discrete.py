"""Distributions of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st import dtypes
from dy2st.distribution.base import Distribution, parameters
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random import bernoulli, multinomial
from dy2st.functions.shape.broadcasting import broadcast_to
from dy2st.functions.shape.gather_scatter import gather, take_along_axis
from dy2st.functions.shape.manipulation import moveaxis, reshape
from dy2st.ir.context import replaced
from dy2st.nn.functional.softmax_family import log_softmax
from dy2st.runtime.eager.tensor import Tensor

_LEAST = 1e-7
"""Probabilities are kept this far from 0 and 1, where their logarithms are taken."""


class Bernoulli(Distribution):
    """1 with the probability `probs`, else 0.

    >>> import dy2st as paddle
    >>> round(paddle.distribution.Bernoulli(0.25).log_prob(paddle.to_tensor(1.0)).item(), 4)
    -1.3863
    """

    def __init__(self, probs: Any, name: str | None = None):
        (self.chance,) = parameters(probs, name="Bernoulli")
        self.probs = self.chance  # type: ignore[assignment]
        super().__init__(self.chance.shape)

    @property
    def mean(self) -> Tensor:
        return self.chance

    @property
    def variance(self) -> Tensor:
        return self.chance * (1.0 - self.chance)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        with replaced(grad=False):
            return bernoulli(broadcast_to(self.chance, self._shape(shape)))

    def rsample(self, shape: Sequence[int] = (), temperature: float = 1.0) -> Tensor:
        """Return numbers that are nearly 0 or 1 at a low temperature, and differentiable."""
        u = self._uniform(shape, self.chance)
        return math.sigmoid((math.logit(self._kept()) + math.logit(u)) / temperature)

    def log_prob(self, value: Any) -> Tensor:
        p = self._kept()
        return value * math.log(p) + (1.0 - value) * math.log1p(-p)

    def entropy(self) -> Tensor:
        p = self._kept()
        return -p * math.log(p) - (1.0 - p) * math.log1p(-p)

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of what is not above a value."""
        return where(value < 0, 0.0, where(value < 1, 1.0 - self.chance, 1.0))

    def _kept(self) -> Tensor:
        return math.clip(self.chance, _LEAST, 1.0 - _LEAST)


class Geometric(Distribution):
    """How many trials fail before the first one succeeds, each with the probability `probs`."""

    def __init__(self, probs: Any):
        (self.chance,) = parameters(probs, name="Geometric")
        self.probs = self.chance  # type: ignore[assignment]
        super().__init__(self.chance.shape)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.chance - 1.0

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.chance - 1.0) / self.chance

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return math.floor(math.log(self._uniform(shape, self.chance)) / math.log1p(-self.chance))

    def log_prob(self, value: Any) -> Tensor:
        return value * math.log1p(-self.chance) + math.log(self.chance)

    def pmf(self, k: Any) -> Tensor:
        """Return the probability of k failures."""
        return self.prob(k)

    def log_pmf(self, k: Any) -> Tensor:
        """Return the logarithm of the probability of k failures."""
        return self.log_prob(k)

    def entropy(self) -> Tensor:
        p = self.chance
        return -((1.0 - p) * math.log1p(-p) + p * math.log(p)) / p

    def cdf(self, k: Any) -> Tensor:
        """Return the probability of no more than k failures."""
        return 1.0 - (1.0 - self.chance) ** (k + 1)


class Categorical(Distribution):
    """Class numbers, with probabilities in proportion to `logits` along its last axis, as Paddle has it.

    `sample`, `probs` and `log_prob` read `logits` as weights that are not negative; `entropy` and `kl_divergence` read
    them as scores, whose softmax is taken. Both are the same for weights that are the softmax of the scores only.

    >>> import dy2st as paddle
    >>> weights = paddle.to_tensor([1.0, 3.0])
    >>> paddle.distribution.Categorical(weights).probs(paddle.to_tensor([1])).tolist()
    [0.75]
    """

    def __init__(self, logits: Any, name: str | None = None):
        self.logits = floating(logits, "Categorical")
        if not self.logits.ndim:
            raise ValueError("Categorical needs an axis of classes, not a 0-D tensor")
        super().__init__(self.logits.shape[:-1])

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        count: Any = 1
        for extent in shape:
            count = count * extent
        rows = self.logits if self.logits.ndim == 1 else reshape(self.logits, [-1, self.logits.shape[-1]])
        with replaced(grad=False):
            drawn = multinomial(rows, count, replacement=True)
        return reshape(moveaxis(drawn, -1, 0), self._shape(shape))

    def probs(self, value: Any) -> Tensor:
        """Return the probabilities of class numbers: of one distribution for each, of several in the last axis."""
        shares = self.logits / reduction.sum(self.logits, -1, keepdim=True)
        value = cast_to(tensor(value, "Categorical"), dtypes.int64)
        if shares.ndim == 1:
            return reshape(gather(shares, reshape(value, [-1])), value.shape)
        if value.ndim == 1:
            value = broadcast_to(value, [*shares.shape[:-1], value.shape[0]])
        return take_along_axis(shares, value, -1)

    def log_prob(self, value: Any) -> Tensor:
        return math.log(self.probs(value))

    def entropy(self) -> Tensor:
        logs = log_softmax(self.logits)
        return -reduction.sum(math.exp(logs) * logs, -1)
