"""ExponentialFamily: what all laws share whose log density is <natural parameters, statistics> less a normaliser."""

from __future__ import annotations

from typing import Any

from dy2st.distribution.base import Distribution, register_kl
from dy2st.functions.math import reduction
from dy2st.functions.shape.creation import zeros_like
from dy2st.ir.context import replaced
from dy2st.runtime.autograd_engine.backward import grad
from dy2st.runtime.eager.tensor import Tensor


class ExponentialFamily(Distribution):
    """Base of exponential families; a subclass says `_natural_parameters` and `_log_normalizer` of them.

    Entropy and divergence follow from the gradient of the normaliser, the means of the statistics (F. Nielsen and R.
    Nock, "Entropies and cross-entropies of exponential families", 2010).
    """

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no natural parameters")

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no normaliser")

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of what the density has as a factor without parameters, its logarithm."""
        return 0.0

    def entropy(self) -> Tensor:
        natural, normalizer, means = _means(self)
        found = normalizer - self._mean_carrier_measure
        for parameter, mean in zip(natural, means, strict=True):
            found = found - _events_summed(self, parameter * mean)
        return found


def _means(family: ExponentialFamily) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    """Return the natural parameters, the normaliser and its gradient by them."""
    with replaced(grad=True):
        natural = [p if not p.stop_gradient else _leaf(p) for p in family._natural_parameters]
        normalizer = family._log_normalizer(*natural)
        slopes = grad([normalizer], natural, create_graph=True, allow_unused=True)
        return natural, normalizer, [zeros_like(p) if d is None else d for p, d in zip(natural, slopes, strict=True)]


def _leaf(parameter: Tensor) -> Tensor:
    found = parameter.detach()
    found.stop_gradient = False
    return found


def _events_summed(family: Distribution, value: Tensor) -> Tensor:
    rank = len(family.event_shape)
    return reduction.sum(value, list(range(-rank, 0))) if rank else value


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"no divergence of {type(p).__name__} and {type(q).__name__} is known: use register_kl"
        )
    mine, normalizer, means = _means(p)
    others = q._natural_parameters
    found = q._log_normalizer(*others) - normalizer
    for one, other, mean in zip(mine, others, means, strict=True):
        found = found - _events_summed(p, (other - one) * mean)
    return found
