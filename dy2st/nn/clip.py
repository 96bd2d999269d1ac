"""Gradient clipping, given to an optimizer as `grad_clip`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dy2st.ir.context import current, replaced
from dy2st.nn.maths import TENSORS
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Settable

Pairs = Sequence[tuple[Tensor, Any]]


class ClipGradBase(Settable):
    """Base of the clippings. Called on pairs (parameter, gradient), returns pairs with clipped gradients.

    Gradients of None, and those of parameters whose `need_clip` is False, stay as they are.
    """

    _not_settings: ClassVar[frozenset[str]] = frozenset({"clip_norm", "max", "min"})  # see `bound`

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Any]]:
        with replaced(grad=False):
            taken = [i for i, (p, g) in enumerate(params_grads) if g is not None and getattr(p, "need_clip", True)]
            clipped = self.clipped([params_grads[i][1] for i in taken], TENSORS)
            found = dict(zip(taken, clipped, strict=True))
            return [(p, found.get(i, g)) for i, (p, g) in enumerate(params_grads)]

    def clipped(self, grads: list[Any], maths: Any) -> list[Any]:
        """Return clipped gradients; they are arrays or tensors, `maths` the arithmetic for them."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it clips: define `clipped`")

    def bound(self, name: str) -> Any:
        """Return a number of this clipping as it is now; in a trace as it is at each run."""
        trace, value = current().trace, getattr(self, name)
        return trace.read_attribute(self, name, value) if hasattr(trace, "read_attribute") else value


class ClipGradByValue(ClipGradBase):
    """Keep each element between `min` (-max where None) and `max`."""

    def __init__(self, max: float, min: float | None = None):
        if min is None and max <= 0:
            raise ValueError(f"ClipGradByValue: max must be positive where min is not given, not {max}")
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def clipped(self, grads: list[Any], maths: Any) -> list[Any]:
        low, high = self.bound("min"), self.bound("max")
        return [maths.minimum(maths.maximum(g, low), high) for g in grads]

    def __repr__(self) -> str:
        return f"ClipGradByValue(min={self.min}, max={self.max})"


class ClipGradByNorm(ClipGradBase):
    """Scale a gradient down to the norm `clip_norm` where its own norm is above it."""

    def __init__(self, clip_norm: float):
        self.clip_norm = float(clip_norm)

    def clipped(self, grads: list[Any], maths: Any) -> list[Any]:
        most = self.bound("clip_norm")
        return [g * (most / maths.maximum(maths.sqrt(maths.sum(g * g)), most)) for g in grads]

    def __repr__(self) -> str:
        return f"ClipGradByNorm(clip_norm={self.clip_norm})"


class ClipGradByGlobalNorm(ClipGradBase):
    """Scale all gradients down together where the norm of all their elements is above `clip_norm`."""

    def __init__(self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False):
        self.clip_norm, self.group_name, self.auto_skip_clip = float(clip_norm), group_name, auto_skip_clip

    def clipped(self, grads: list[Any], maths: Any) -> list[Any]:
        return self.scaled(grads, self.total(grads, 0.0, maths), maths) if grads else []

    def total(self, grads: list[Any], total: Any, maths: Any) -> Any:
        """Return `total` and the squares of all elements, in float64."""
        for g in grads:
            total = total + maths.wide(maths.sum(g * g))
        return total

    def scaled(self, grads: list[Any], total: Any, maths: Any) -> list[Any]:
        """Return gradients scaled down where the root of `total`, which is of all of them, is too large."""
        most = self.bound("clip_norm")
        factor = most / maths.maximum(maths.sqrt(total), most)
        return [g * maths.like(factor, g) for g in grads]

    def __repr__(self) -> str:
        return f"ClipGradByGlobalNorm(clip_norm={self.clip_norm})"
