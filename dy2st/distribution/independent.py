"""Independent: a distribution whose axes of the batch count as axes of a draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution
from dy2st.distribution.transforms import sum_of_last
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
