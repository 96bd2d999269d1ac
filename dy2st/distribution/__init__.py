"""`paddle.distribution`: distributions to draw from, their densities, entropies and divergences."""

from dy2st.distribution import divergence
from dy2st.distribution.base import Distribution, kl_divergence, register_kl
from dy2st.distribution.continuous import Cauchy, Exponential, Gumbel, Laplace, LogNormal, Normal, Uniform
from dy2st.distribution.discrete import Bernoulli, Categorical, Geometric
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "Laplace",
    "LogNormal",
    "Normal",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
