"""Transforms of numbers and events, and the distributions of what they make of draws."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, ClassVar

from dy2st.distribution.base import Distribution, converted
from dy2st.functions.math import math, reduction
from dy2st.ir.context import replaced
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.tensor import Tensor


class Transform:
    """Base of the transforms; a subclass says `_forward`, `_inverse` and `_forward_log_det_jacobian`.

    Called with a tensor it does what `forward` does; with a distribution it makes a TransformedDistribution, with
    another transform the ChainTransform of itself and that one.
    """

    leaves_programs = True
    """Whether a Program that makes one hands it out, made again of its attributes."""
    domain_rank: int = 0
    """How many last axes of what is transformed are one event."""
    codomain_rank: int = 0
    """How many last axes of a result are one event."""
    injective: ClassVar[bool] = True
    """Whether no two events become the same."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if is_plain_module(cls.__module__):
            converted(cls)
            if isinstance(cls.__call__, FunctionType):
                cls.__call__.__dy2st_convert__ = True  # type: ignore[attr-defined]

    def __call__(self, input: Any) -> Any:
        if isinstance(input, Distribution):
            return TransformedDistribution(input, [self])
        return ChainTransform([self, input]) if isinstance(input, Transform) else self.forward(input)

    def forward(self, x: Tensor) -> Tensor:
        """Return what x becomes; ValueError for an x of fewer axes than an event has."""
        return self._forward(_with_axes(x, self.domain_rank))

    def inverse(self, y: Tensor) -> Any:
        """Return what becomes y."""
        return self._inverse(_with_axes(y, self.codomain_rank))

    def forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        """Return the logarithm of how much `forward` spreads the neighbourhood of each event.

        Raises NotImplementedError for a transform that makes the same of several events.
        """
        if not self._is_injective():
            raise NotImplementedError(f"{type(self).__name__} is not injective: it has no log_det_jacobian")
        return self._forward_log_det_jacobian(_with_axes(x, self.domain_rank))

    def inverse_log_det_jacobian(self, y: Tensor) -> Any:
        """Return the logarithm of how much `inverse` spreads the neighbourhood of each event."""
        return self._inverse_log_det_jacobian(_with_axes(y, self.codomain_rank))

    def forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        """Return the shape that tensors of a shape become."""
        return self._forward_shape(_sequence(shape))

    def inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        """Return the shape of which tensors become tensors of this one."""
        return self._inverse_shape(_sequence(shape))

    def _is_injective(self) -> bool:
        return self.injective

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def _inverse(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        if type(self)._inverse_log_det_jacobian is Transform._inverse_log_det_jacobian:
            raise NotImplementedError(f"{type(self).__name__} has no log_det_jacobian, neither forward nor inverse")
        return -self._inverse_log_det_jacobian(self.forward(x))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        if type(self)._forward_log_det_jacobian is Transform._forward_log_det_jacobian:
            raise NotImplementedError(f"{type(self).__name__} has no log_det_jacobian, neither forward nor inverse")
        return -self._forward_log_det_jacobian(self._inverse(y))

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return shape

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return shape


converted(Transform)
Transform.__call__.__dy2st_convert__ = True  # type: ignore[attr-defined]


class ChainTransform(Transform):
    """Transforms one after the other, the first one first.

    Raises TypeError for what is no sequence of transforms, ValueError for an empty one.
    """

    def __init__(self, transforms: Sequence[Transform]):
        self.transforms = several(transforms, "ChainTransform")
        rank = transforms[-1].codomain_rank
        for transform in reversed(self.transforms):
            rank = max(rank - transform.codomain_rank + transform.domain_rank, transform.domain_rank)
        self.domain_rank = rank
        for transform in self.transforms:
            rank += transform.codomain_rank - transform.domain_rank
        self.codomain_rank = rank

    def _is_injective(self) -> bool:
        return all(t._is_injective() for t in self.transforms)

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Any:
        for transform in reversed(self.transforms):
            y = transform.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        found, rank = 0.0, self.domain_rank
        for transform in self.transforms:
            found = found + sum_of_last(transform.forward_log_det_jacobian(x), rank - transform.domain_rank)
            x = transform.forward(x)
            rank += transform.codomain_rank - transform.domain_rank
        return found

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        for transform in self.transforms:
            shape = transform.forward_shape(shape)
        return shape

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        return shape


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


def several(transforms: Any, name: str) -> list[Transform]:
    """Return transforms as a list."""
    if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
        raise TypeError(f"{name} needs a sequence of Transforms")
    if not transforms:
        raise ValueError(f"{name} needs at least one Transform")
    return list(transforms)


def sum_of_last(value: Any, count: int) -> Any:
    """Return the sum over the last axes, as many as `count`."""
    return reduction.sum(value, list(range(-count, 0))) if count > 0 else value


def logarithm_of_size(x: Tensor) -> Tensor:
    """Return log |x|."""
    return math.log(math.abs(x))


def _with_axes(x: Any, rank: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"a Transform needs a Tensor, not {type(x).__name__}")
    if x.ndim < rank:
        raise ValueError(f"a Transform of events of {rank} axes needs as many, not {x.ndim}")
    return x


def _sequence(shape: Any) -> Any:
    if not isinstance(shape, Sequence):
        raise TypeError(f"a shape is a sequence of ints, not {type(shape).__name__}")
    return shape
