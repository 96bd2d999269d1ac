"""The divergences of Kullback and Leibler that are known, pair by pair."""

from __future__ import annotations

import math as numbers
from typing import Any

from dy2st.distribution.base import register_kl
from dy2st.distribution.continuous import Cauchy, Exponential, Laplace, LogNormal, Normal, Uniform
from dy2st.distribution.continuous_bernoulli import ContinuousBernoulli
from dy2st.distribution.counts import Binomial, Poisson, counts_up_to, times_log
from dy2st.distribution.discrete import Bernoulli, Categorical, Geometric
from dy2st.distribution.gammas import Beta, Dirichlet, Gamma, log_beta
from dy2st.distribution.multivariate_normal import MultivariateNormal, squared_distance
from dy2st.functions.linalg.matrix_functions import triangular_solve
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


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    shapes = math.lgamma(b) - math.lgamma(a) + (a - b) * math.digamma(a)
    return b * math.log(p.rate / q.rate) + shapes + (q.rate - p.rate) * (a / p.rate)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    a, b = p.alpha - q.alpha, p.beta - q.beta
    known = log_beta(q.alpha, q.beta) - log_beta(p.alpha, p.beta)
    return known + a * math.digamma(p.alpha) + b * math.digamma(p.beta) - (a + b) * math.digamma(p.alpha + p.beta)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = reduction.sum(a, -1)
    known = math.lgamma(total) - math.lgamma(reduction.sum(b, -1)) + reduction.sum(math.lgamma(b) - math.lgamma(a), -1)
    return known + reduction.sum((a - b) * (math.digamma(a) - math.digamma(total).unsqueeze(-1)), -1)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return times_log(p.rate, p.rate) - times_log(p.rate, q.rate) - p.rate + q.rate


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    counts = counts_up_to(p.support(), p, p.chance.dtype)
    logs = p.log_prob(counts)
    possible = logs > -float("inf")
    apart = where(possible, logs, 0.0) - where(possible, q.log_prob(counts), 0.0)
    return reduction.sum(math.exp(logs) * apart, 0)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    odds = p.mean * math.log(q.chance) + (1.0 - p.mean) * math.log1p(-q.chance)
    return -p.entropy() - q.log_constant() - odds


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    spread = triangular_solve(q.factor, p.factor, upper=False)
    apart = squared_distance(q.factor, p.loc - q.loc)
    total = reduction.sum(math.square(spread), [-2, -1]) + apart
    return q.log_width() - p.log_width() + 0.5 * (total - p.loc.shape[-1])
