"""Transforms of events: of several numbers together, or each by a transform of its own."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from dy2st.distribution.transforms import Transform, several, sum_of_last
from dy2st.functions.math import math, reduction
from dy2st.functions.shape.concat_split import concat, stack, unstack
from dy2st.functions.shape.creation import arange, ones_like, zeros
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.activation import log_sigmoid
from dy2st.nn.functional.softmax_family import softmax
from dy2st.runtime.eager.tensor import Tensor


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_rank` axes of numbers count as one event.

    Raises TypeError for a base that is no transform, ValueError for a rank below 1.

    >>> import dy2st as paddle
    >>> both = paddle.distribution.IndependentTransform(paddle.distribution.ExpTransform(), 1)
    >>> both.forward_log_det_jacobian(paddle.to_tensor([1.0, 2.0])).item()
    3.0
    """

    def __init__(self, base: Transform, reinterpreted_batch_rank: int):
        if not isinstance(base, Transform):
            raise TypeError(f"IndependentTransform needs a Transform, not {type(base).__name__}")
        if reinterpreted_batch_rank <= 0:
            raise ValueError(f"IndependentTransform: the rank must be positive, not {reinterpreted_batch_rank}")
        self._base, self._rank = base, reinterpreted_batch_rank
        self.domain_rank = base.domain_rank + reinterpreted_batch_rank
        self.codomain_rank = base.codomain_rank + reinterpreted_batch_rank

    def _is_injective(self) -> bool:
        return self._base._is_injective()

    def _forward(self, x: Tensor) -> Tensor:
        return self._base.forward(x)

    def _inverse(self, y: Tensor) -> Any:
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return sum_of_last(self._base.forward_log_det_jacobian(x), self._rank)

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return self._base.forward_shape(shape)

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return self._base.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of the shape `in_event_shape` as events of the shape `out_event_shape`.

    Raises TypeError for what is no sequence, ValueError where the shapes have different numbers of elements.

    >>> import dy2st as paddle
    >>> paddle.distribution.ReshapeTransform((2, 3), (3, 2)).forward_shape((1, 2, 3))
    (1, 3, 2)
    """

    def __init__(self, in_event_shape: Sequence[int], out_event_shape: Sequence[int]):
        if not isinstance(in_event_shape, Sequence) or not isinstance(out_event_shape, Sequence):
            raise TypeError(f"ReshapeTransform needs two shapes, not {in_event_shape!r} and {out_event_shape!r}")
        self._in, self._out = tuple(in_event_shape), tuple(out_event_shape)
        if numbers.prod(self._in) != numbers.prod(self._out):
            raise ValueError(f"ReshapeTransform: {self._in} has not as many elements as {self._out}")
        self.domain_rank, self.codomain_rank = len(self._in), len(self._out)

    @property
    def in_event_shape(self) -> tuple[int, ...]:
        """The shape of what is transformed."""
        return self._in

    @property
    def out_event_shape(self) -> tuple[int, ...]:
        """The shape of results."""
        return self._out

    def _forward(self, x: Tensor) -> Tensor:
        return reshape(x, [*x.shape[: x.ndim - len(self._in)], *self._out])

    def _inverse(self, y: Tensor) -> Tensor:
        return reshape(y, [*y.shape[: y.ndim - len(self._out)], *self._in])

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return zeros(x.shape[: x.ndim - len(self._in)], x.dtype)

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return (*_before(shape, self._in), *self._out)

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return (*_before(shape, self._out), *self._in)


class SoftmaxTransform(Transform):
    """Shares in proportion to e^x along the last axis; `inverse` is the logarithm.

    >>> import dy2st as paddle
    >>> paddle.distribution.SoftmaxTransform()(paddle.zeros([2])).tolist()
    [0.5, 0.5]
    """

    domain_rank = codomain_rank = 1
    injective = False

    def _forward(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return math.log(y)

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return _with_axis(shape, "SoftmaxTransform")

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        return _with_axis(shape, "SoftmaxTransform")


class StickBreakingTransform(Transform):
    """Shares that add up to 1, one more than there are numbers: each takes a part of what those before it leave.

    >>> import dy2st as paddle
    >>> round(paddle.distribution.StickBreakingTransform()(paddle.zeros([2])).sum().item(), 6)
    1.0
    """

    domain_rank = codomain_rank = 1

    def _forward(self, x: Tensor) -> Tensor:
        part = math.sigmoid(self._moved(x))
        one = ones_like(part[..., :1])
        left = reduction.cumprod(1.0 - part, -1)
        return concat([part, one], -1) * concat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        shares = y[..., :-1]
        left = 1.0 - reduction.cumsum(shares, -1)
        return math.log(shares) - math.log(left) + math.log(_left_over(shares))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        moved = self._moved(x)
        return reduction.sum(log_sigmoid(moved) - moved + math.log(self._forward(x)[..., :-1]), -1)

    def _forward_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        shape = _with_axis(shape, "StickBreakingTransform")
        return (*shape[:-1], shape[-1] + 1)

    def _inverse_shape(self, shape: Sequence[Any]) -> Sequence[Any]:
        shape = _with_axis(shape, "StickBreakingTransform")
        return (*shape[:-1], shape[-1] - 1)

    def _moved(self, x: Tensor) -> Tensor:
        """Return x moved so that zeros become equal shares."""
        return x - math.log(_left_over(x))


class StackTransform(Transform):
    """The slices along an axis, each by a transform of its own.

    Raises TypeError for what is no sequence of transforms or no axis.

    >>> import dy2st as paddle
    >>> from dy2st.distribution import ExpTransform, StackTransform, TanhTransform
    >>> StackTransform([TanhTransform(), ExpTransform()])(paddle.zeros([2])).tolist()
    [0.0, 1.0]
    """

    def __init__(self, transforms: Sequence[Transform], axis: int = 0):
        if not isinstance(axis, int):
            raise TypeError(f"StackTransform: the axis must be an int, not {type(axis).__name__}")
        self._transforms, self._axis = several(transforms, "StackTransform"), axis
        self.domain_rank = _stacked_rank([t.domain_rank for t in self._transforms], axis)
        self.codomain_rank = _stacked_rank([t.codomain_rank for t in self._transforms], axis)

    @property
    def transforms(self) -> Sequence[Transform]:
        """The transforms of the slices."""
        return self._transforms

    @property
    def axis(self) -> int:
        """The axis along which slices are taken."""
        return self._axis

    def _is_injective(self) -> bool:
        return all(t._is_injective() for t in self._transforms)

    def _forward(self, x: Tensor) -> Tensor:
        return stack([t.forward(v) for t, v in zip(self._transforms, self._slices(x), strict=True)], self._axis)

    def _inverse(self, y: Tensor) -> Tensor:
        return stack([t.inverse(v) for t, v in zip(self._transforms, self._slices(y), strict=True)], self._axis)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        pairs = zip(self._transforms, self._slices(x), strict=True)
        return stack([t.forward_log_det_jacobian(v) for t, v in pairs], self._axis)

    def _slices(self, x: Tensor) -> list[Tensor]:
        if not -x.ndim <= self._axis < x.ndim:
            raise ValueError(f"StackTransform: a tensor of {x.ndim} axes has no axis {self._axis}")
        if x.shape[self._axis] != len(self._transforms):
            raise ValueError(
                f"StackTransform of {len(self._transforms)} transforms: axis {self._axis} has {x.shape[self._axis]}"
            )
        return unstack(x, self._axis, len(self._transforms))


def _stacked_rank(ranks: list[int], axis: int) -> int:
    rank = max(ranks)
    return rank + 1 if axis + rank < 0 else rank


def _left_over(x: Tensor) -> Tensor:
    """Return n, n-1 .. 1 for the n numbers of the last axis."""
    return x.shape[-1] - arange(x.shape[-1], dtype=x.dtype)


def _with_axis(shape: Sequence[Any], name: str) -> Sequence[Any]:
    if not len(shape):
        raise ValueError(f"{name} needs a shape of at least one axis")
    return shape


def _before(shape: Sequence[Any], event: tuple[int, ...]) -> Sequence[Any]:
    """Return the extents before those of an event."""
    kept = len(shape) - len(event)
    if kept < 0 or tuple(shape[kept:]) != event:
        raise ValueError(f"ReshapeTransform: {tuple(shape)} does not end with the event shape {event}")
    return shape[:kept]
