"""The divergences of Kullback and Leibler that are known, pair by pair."""

from __future__ import annotations

import math as numbers
from typing import Any

from dy2st.distribution.base import register_kl
from dy2st.distribution.continuous import Cauchy, Exponential, Laplace, LogNormal, Normal, Uniform
from dy2st.distribution.discrete import Bernoulli, Categorical, Geometric
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import where
from dy2st.nn.functional.softmax_family import log_softmax
from dy2st.runtime.eager.tensor import Tensor


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = math.square(p.scale / q.scale)
    return 0.5 * (ratio + math.square((p.loc - q.loc) / q.scale) - 1.0 - math.log(ratio))


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Tensor:
    return _normal(p, q)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    outside = (p.low < q.low) | (p.high > q.high)
    return where(outside, float("inf"), math.log((q.high - q.low) / (p.high - p.low)))


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1.0 - math.log(ratio)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    apart = math.abs(p.loc - q.loc)
    return math.log(q.scale / p.scale) + apart / q.scale + p.scale / q.scale * math.exp(-apart / p.scale) - 1.0


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    total = math.square(p.scale + q.scale) + math.square(p.loc - q.loc)
    return math.log(total / (p.scale * q.scale)) - 2 * numbers.log(2)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    a, b = p._kept(), q._kept()
    return a * math.log(a / b) + (1.0 - a) * math.log((1.0 - a) / (1.0 - b))


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return math.log(p.chance / q.chance) + (1.0 / p.chance - 1.0) * (math.log1p(-p.chance) - math.log1p(-q.chance))


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    logs = log_softmax(p.logits)
    return reduction.sum(math.exp(logs) * (logs - log_softmax(q.logits)), -1, keepdim=True)
