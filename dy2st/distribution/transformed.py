"""Independent and TransformedDistribution: distributions that are made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution
from dy2st.distribution.transforms import ChainTransform, Transform, sum_of_last
from dy2st.functions.math import math
from dy2st.ir.context import replaced
from dy2st.runtime.eager.tensor import Tensor


class Independent(Distribution):
    """A distribution whose last `reinterpreted_batch_rank` axes of the batch count as axes of one draw.

    Raises TypeError for a base that is no distribution, ValueError for a rank outside of 1 .. the base's.

    >>> import dy2st as paddle
    >>> rows = paddle.distribution.Independent(paddle.distribution.Normal(paddle.zeros([2, 3]), paddle.ones([3])), 1)
    >>> rows.batch_shape, rows.event_shape, rows.log_prob(paddle.zeros([2, 3])).shape
    ((2,), (3,), [2])
    """

    def __init__(self, base: Distribution, reinterpreted_batch_rank: int):
        if not isinstance(base, Distribution):
            raise TypeError(f"Independent needs a Distribution, not {type(base).__name__}")
        if not 0 < reinterpreted_batch_rank <= len(base.batch_shape):
            raise ValueError(
                f"Independent: the rank must be from 1 to {len(base.batch_shape)}, not {reinterpreted_batch_rank}"
            )
        self._base, self._rank = base, reinterpreted_batch_rank
        shape, kept = base.batch_shape + base.event_shape, len(base.batch_shape) - reinterpreted_batch_rank
        super().__init__(shape[:kept], shape[kept:])

    @property
    def mean(self) -> Tensor:
        return self._base.mean

    @property
    def variance(self) -> Tensor:
        return self._base.variance

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        return self._base.sample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return self._base.rsample(shape)

    def log_prob(self, value: Any) -> Tensor:
        return sum_of_last(self._base.log_prob(value), self._rank)

    def entropy(self) -> Tensor:
        return sum_of_last(self._base.entropy(), self._rank)


class TransformedDistribution(Distribution):
    """The distribution of what `transforms`, one after the other, make of draws of `base`.

    Raises TypeError for what is no distribution or no transform, ValueError for a base of too few axes.

    >>> import dy2st as paddle
    >>> from dy2st.distribution import ExpTransform, LogNormal, Normal, TransformedDistribution
    >>> one = TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()])
    >>> x = paddle.to_tensor(2.0)
    >>> abs(one.log_prob(x) - LogNormal(0.0, 1.0).log_prob(x)).item() < 1e-6
    True
    """

    def __init__(self, base: Distribution, transforms: Sequence[Transform]):
        if not isinstance(base, Distribution):
            raise TypeError(f"TransformedDistribution needs a Distribution, not {type(base).__name__}")
        if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
            raise TypeError("TransformedDistribution needs a sequence of Transforms")
        self._base, self._transforms = base, list(transforms)
        shape, rank = base.batch_shape + base.event_shape, len(base.event_shape)
        if transforms:
            chain = ChainTransform(transforms)
            if len(shape) < chain.domain_rank:
                raise ValueError(f"TransformedDistribution: `base` needs {chain.domain_rank} axes, it has {len(shape)}")
            shape = tuple(chain.forward_shape(shape))
            rank = chain.codomain_rank + max(rank - chain.domain_rank, 0)
        super().__init__(shape[: len(shape) - rank], shape[len(shape) - rank :])

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        with replaced(grad=False):
            return self._forward(self._base.sample(shape))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self._base.rsample(shape))

    def log_prob(self, value: Any) -> Tensor:
        rank, found = len(self.event_shape), 0.0
        for transform in reversed(self._transforms):
            x = transform.inverse(value)
            rank += transform.domain_rank - transform.codomain_rank
            found = found - sum_of_last(transform.forward_log_det_jacobian(x), rank - transform.domain_rank)
            value = x
        return found + sum_of_last(self._base.log_prob(value), rank - len(self._base.event_shape))

    def prob(self, value: Any) -> Tensor:
        return math.exp(self.log_prob(value))

    def _forward(self, drawn: Tensor) -> Tensor:
        for transform in self._transforms:
            drawn = transform.forward(drawn)
        return drawn
