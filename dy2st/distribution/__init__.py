"""`paddle.distribution`: distributions to draw from, their densities, entropies and divergences."""

from dy2st.distribution import divergence
from dy2st.distribution.base import Distribution, kl_divergence, register_kl
from dy2st.distribution.continuous import Cauchy, Exponential, Gumbel, Laplace, LogNormal, Normal, Uniform
from dy2st.distribution.continuous_bernoulli import ContinuousBernoulli
from dy2st.distribution.counts import Binomial, Multinomial, Poisson
from dy2st.distribution.discrete import Bernoulli, Categorical, Geometric
from dy2st.distribution.elementwise_transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    TanhTransform,
)
from dy2st.distribution.event_transforms import (
    IndependentTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from dy2st.distribution.exponential_family import ExponentialFamily
from dy2st.distribution.gammas import Beta, Chi2, Dirichlet, Gamma, StudentT
from dy2st.distribution.independent import Independent
from dy2st.distribution.multivariate_normal import MultivariateNormal
from dy2st.distribution.transforms import ChainTransform, Transform, TransformedDistribution
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "ChainTransform",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Independent",
    "IndependentTransform",
    "Laplace",
    "LogNormal",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "Poisson",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
