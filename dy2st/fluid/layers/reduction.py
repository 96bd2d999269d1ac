"""Reductions with 1.x's `dim` and `keep_dim`; over all axes they give a 0-D tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math import reduction, search
from dy2st.functions.shape import gather_scatter
from dy2st.runtime.eager.tensor import Tensor


def _reduced(name: str, function: Callable[..., Tensor], meaning: str) -> Callable[..., Tensor]:
    def reduce(input: Any, dim: Any = None, keep_dim: bool = False, name: str | None = None) -> Tensor:
        return function(input, dim, keepdim=keep_dim)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"Return {meaning} over the axes `dim` (None: all), which stay with extent 1 with `keep_dim`."
    return reduce


reduce_sum = _reduced("reduce_sum", reduction.sum, "the sum")
reduce_mean = _reduced("reduce_mean", reduction.mean, "the mean")
reduce_max = _reduced("reduce_max", reduction.max, "the maximum")
reduce_min = _reduced("reduce_min", reduction.min, "the minimum")
reduce_prod = _reduced("reduce_prod", reduction.prod, "the product")
reduce_all = _reduced("reduce_all", reduction.all, "whether all elements are true")
reduce_any = _reduced("reduce_any", reduction.any, "whether any element is true")


def argmax(x: Any, axis: int = 0) -> Tensor:
    """Return the places of the largest elements along an axis."""
    return reduction.argmax(x, axis)


def argmin(x: Any, axis: int = 0) -> Tensor:
    """Return the places of the smallest elements along an axis."""
    return reduction.argmin(x, axis)


def argsort(input: Any, axis: int = -1, descending: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the sorted elements and the places that they had."""
    places = search.argsort(input, axis, descending)
    return gather_scatter.take_along_axis(tensor(input, "argsort"), places, axis), places


def topk(input: Any, k: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the k largest elements along the last axis, and their places."""
    return search.topk(input, k)


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None) -> Tensor:
    """Return the share of rows whose label [n, 1] is among the k largest of the scores [n, classes]."""
    input, label = tensor(input, "accuracy"), tensor(label, "accuracy")
    places = search.topk(input, k)[1]
    found = reduction.any(places == cast_to(label.reshape([-1, 1]), places.dtype), 1)
    return reduction.mean(cast_to(found, input.dtype))


__all__ = [
    "accuracy",
    "argmax",
    "argmin",
    "argsort",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "topk",
]
