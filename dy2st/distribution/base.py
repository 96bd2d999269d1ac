"""Distribution: what all distributions share; and the divergence of two, from a table of pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from dy2st.functions.core.operands import cast_to, floating
from dy2st.functions.math import math
from dy2st.functions.math.random import rand
from dy2st.functions.shape.broadcasting import broadcast_tensors
from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.context import replaced
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.tensor import Tensor


def parameters(*values: Any, name: str) -> list[Tensor]:
    """Return numbers and tensors as float tensors of one shape, in the dtype of the first that is no number."""
    made = [floating(to_tensor(v) if isinstance(v, (list, tuple)) else v, name) for v in values]
    leading = next((t for t, v in zip(made, values, strict=True) if not isinstance(v, (int, float))), made[0])
    return list(broadcast_tensors([cast_to(t, leading.dtype) for t in made])) if len(made) > 1 else made


def converted(kind: type) -> None:
    """Have `to_static` convert the methods of a class, so that it sees which attributes they read."""
    for name, found in vars(kind).items():
        method = found.fget if isinstance(found, property) else found
        if isinstance(method, FunctionType) and not name.startswith("__"):
            method.__dy2st_convert__ = True  # type: ignore[attr-defined]


class Distribution:
    """Base of the distributions; a subclass says `rsample` (or `sample`), `log_prob`, `mean`, `variance`, `entropy`.

    `batch_shape` is the shape of the parameters, of which each is a distribution of its own; `event_shape` the shape of
    one draw.
    """

    leaves_programs = True
    """Whether a Program that makes one hands it out, made again of its attributes."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if is_plain_module(cls.__module__):
            converted(cls)

    def __init__(self, batch_shape: Sequence[Any] = (), event_shape: Sequence[Any] = ()):
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)

    @property
    def batch_shape(self) -> tuple[Any, ...]:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[Any, ...]:
        """The shape of one draw."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return math.sqrt(self.variance)

    def sample(self, shape: Sequence[int] = ()) -> Tensor:
        """Return draws, of `shape` for each parameter; no gradient flows through them."""
        with replaced(grad=False):
            return self.rsample(shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """Return draws through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no draws that are differentiable")

    def log_prob(self, value: Any) -> Tensor:
        """Return the logarithm of the density, or of the probability, of a value."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def prob(self, value: Any) -> Tensor:
        """Return the density, or the probability, of a value."""
        return math.exp(self.log_prob(value))

    def probs(self, value: Any) -> Tensor:
        """Do what `prob` does."""
        return self.prob(value)

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def kl_divergence(self, other: Distribution) -> Tensor:
        """Return how much is lost where `other` stands for this distribution: `paddle.distribution.kl_divergence`."""
        return kl_divergence(self, other)

    def _shape(self, shape: Sequence[int]) -> list[Any]:
        return [*shape, *self._batch_shape, *self._event_shape]

    def _uniform(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """Return uniform numbers in (0, 1): neither end, whose logarithm would be infinite."""
        tiny = 1.2e-38 if like.dtype.bits <= 32 else 2.3e-308
        return math.clip(rand(self._shape(shape), like.dtype), tiny, 1.0 - 6e-8 if like.dtype.bits <= 32 else None)


converted(Distribution)

_RULES: dict[tuple[type, type], Callable[..., Tensor]] = {}


def register_kl(cls_p: type, cls_q: type) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Return a decorator of the function that computes the divergence of two kinds of distributions."""

    def register(rule: Callable[..., Tensor]) -> Callable[..., Tensor]:
        _RULES[cls_p, cls_q] = rule
        if is_plain_module(rule.__module__):
            rule.__dy2st_convert__ = True  # type: ignore[attr-defined]
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the mean under p of log p - log q: what is lost where q stands for p.

    Raises NotImplementedError for a pair of which no rule is known; `register_kl` adds one.

    >>> import dy2st as paddle
    >>> one, two = paddle.distribution.Normal(0.0, 1.0), paddle.distribution.Normal(1.0, 1.0)
    >>> paddle.distribution.kl_divergence(one, two).item()
    0.5
    """
    return _rule(p, q)(p, q)


kl_divergence.__dy2st_convert__ = True  # type: ignore[attr-defined]


def _rule(p: Distribution, q: Distribution) -> Callable[..., Tensor]:
    for mine in type(p).__mro__:
        for other in type(q).__mro__:
            rule = _RULES.get((mine, other))
            if rule is not None:
                return rule
    raise NotImplementedError(f"no divergence of {type(p).__name__} and {type(q).__name__} is known: use register_kl")
