"""Random tensors of further laws, made of uniform and normal draws, so that a Program draws what eager code draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.functions.core.assigning import detach, without_history
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.math import exp, gammaincc, log, sqrt
from dy2st.functions.math.random import rand, randint, randn, uniform
from dy2st.functions.math.reduction import argmax, cumsum
from dy2st.functions.math.search import argsort, sort
from dy2st.functions.shape.broadcasting import broadcast_tensors
from dy2st.functions.shape.creation import arange, full_like, zeros_like
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.runtime.eager.tensor import Tensor

_TRIES = 12
"""Each try of a gamma draw fails with a chance of at most 1 in 20."""


def standard_gamma(x: Any, name: str | None = None) -> Tensor:
    """Return numbers of gamma laws with the shapes x and rate 1.

    G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000), the first of several tries.

    >>> import dy2st as paddle
    >>> abs(paddle.standard_gamma(paddle.full([1000], 1e4)).mean().item() - 1e4) < 100
    True
    """
    alpha = detach(floating(x, "standard_gamma"))
    raised = where(alpha < 1.0, alpha + 1.0, alpha)
    d = raised - 1.0 / 3.0
    normal, uniform = randn([_TRIES, *alpha.shape], alpha.dtype), rand([_TRIES, *alpha.shape], alpha.dtype)
    v = (1.0 + normal / (3.0 * sqrt(d))) ** 3
    positive = where(v > 0.0, v, full_like(v, 1.0))
    fits = (v > 0.0) & (log(1.0 - uniform) < 0.5 * normal * normal + d * (1.0 - positive + log(positive)))
    first = argmax(cast_to(fits, dtypes.int32), 0, keepdim=True)
    made = d * take_along_axis(positive, first, 0)[0]
    boost = exp(log(1.0 - rand(alpha.shape, alpha.dtype)) / where(alpha < 1.0, alpha, full_like(alpha, 1.0)))
    return where(alpha < 1.0, made * boost, made)


def poisson(x: Any, name: str | None = None) -> Tensor:
    """Return numbers of Poisson laws with the means x, in its dtype: where the law's distribution passes a draw.

    >>> import dy2st as paddle
    >>> paddle.poisson(paddle.zeros([2])).tolist()
    [0.0, 0.0]
    """
    x = detach(floating(x, "poisson"))
    rate = cast_to(x, dtypes.float64)
    draw = rand(rate.shape, dtypes.float64)
    low = full_like(rate, -1.0)
    high = rate + 12.0 * sqrt(rate) + 60.0
    for _ in range(44):  # the distribution at `low` is not above the draw, that at `high` is
        middle = ((low + high) * 0.5).floor()
        above = gammaincc(middle.clip(0.0) + 1.0, rate) > draw
        above = (above | (rate == 0.0)) & (middle >= 0.0)
        low, high = where(above, low, middle), where(above, middle, high)
    return cast_to(high.ceil(), x.dtype)


def binomial(count: Any, prob: Any, name: str | None = None) -> Tensor:
    """Return how many of `count` tries with the chance `prob` succeeded, in int64.

    >>> import dy2st as paddle
    >>> paddle.binomial(paddle.to_tensor([4, 7]), paddle.to_tensor([0.0, 1.0])).tolist()
    [0, 7]
    """
    count, prob = cast_to(tensor(count, "binomial"), dtypes.int64), floating(prob, "binomial")
    count, prob = broadcast_tensors([count, prob])
    most = count.max().item()
    tries = reshape(arange(most), [most, *([1] * count.ndim)])
    hit = (rand([most, *count.shape], prob.dtype) < prob) & (tries < count)
    return cast_to(hit, dtypes.int64).sum(0)


def random_(x: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Tensor:
    """Write integers in [from_, to) into x, up to the largest that its dtype holds exactly without `to`; return x."""
    if generator is not None:
        raise ValueError("random_ draws from the default generator, which paddle.seed sets")
    if to is None:
        to, from_ = (from_, 0) if from_ else (_beyond(x.dtype), 0)
    if not from_ < to:
        raise ValueError(f"random_: from_ must be below to, not {from_} and {to}")
    return without_history(x, cast_to(randint(from_, to, x.shape, "int64"), x.dtype))


def _beyond(dtype: dtypes.DType) -> int:
    if dtype.is_floating:
        return 2 ** {dtypes.float16: 11, dtypes.float32: 24}.get(dtype, 53)
    return 2 if dtype.is_bool else int(np.iinfo(dtype.numpy).max)


def top_p_sampling(
    x: Any, ps: Any, threshold: Any = None, topp_seed: Any = None, seed: int = -1, k: int = 0,
    mode: str = "truncated", return_top: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Draw a class of each row of probabilities [batch, classes] among the likeliest that add up to `ps` [batch].

    Returns the probability and the number of the class, [batch, 1] each; with `return_top` the `k` likeliest and their
    numbers as well. Classes less likely than `threshold` [batch] are left out.
    """
    if topp_seed is not None:
        raise ValueError("top_p_sampling: rows have no seeds of their own here, give `seed`")
    x, ps = floating(x, "top_p_sampling"), reshape(floating(ps, "top_p_sampling"), [-1, 1])
    order = argsort(x, -1, True)
    ranked = sort(x, -1, True)
    before = cumsum(ranked, -1) - ranked
    stays = before < ps if mode == "truncated" else ranked >= 0.0
    if threshold is not None:
        stays = stays & (ranked >= reshape(floating(threshold, "top_p_sampling"), [-1, 1]))
    stays = stays | (arange(x.shape[-1]) == 0)  # the likeliest always does
    reached = cumsum(where(stays, ranked, zeros_like(ranked)), -1)
    draw = uniform([x.shape[0], 1], x.dtype, 0.0, 1.0, max(seed, 0)) * reached[:, -1:]
    place = argmax(cast_to(reached > draw, dtypes.int32), -1, keepdim=True)
    found = take_along_axis(ranked, place, -1), take_along_axis(order, place, -1)
    return (*found, ranked[:, :k], order[:, :k]) if return_top else found
