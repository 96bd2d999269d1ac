"""Accuracy: how often the true class is among the k most likely ones."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.assigning import write
from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math.reduction import any as any_of
from dy2st.functions.math.reduction import argmax, mean
from dy2st.functions.math.reduction import sum as sum_of
from dy2st.functions.math.search import topk
from dy2st.functions.shape.creation import numel
from dy2st.functions.shape.manipulation import cast
from dy2st.metric.base import Metric, as_array
from dy2st.runtime.eager.tensor import Tensor


class Accuracy(Metric):
    """The share of samples whose label is among the k highest scores, for each k of `topk`.

    >>> import dy2st as paddle
    >>> metric = paddle.metric.Accuracy()
    >>> scores = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> metric.update(metric.compute(scores, paddle.to_tensor([[1], [1]])))
    0.5
    >>> metric.accumulate()
    0.5
    """

    def __init__(self, topk: Any = (1,), name: str | None = None):
        self.topk = tuple(topk) if isinstance(topk, (list, tuple)) else (topk,)
        if not self.topk or any(not isinstance(k, int) or k < 1 for k in self.topk):
            raise ValueError(f"Accuracy: topk must be positive ints, not {topk!r}")
        self.maxk = max(self.topk)
        stem = name or "acc"
        self._names = [stem] if self.maxk == 1 else [f"{stem}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred: Any, label: Any, *args: Any) -> Tensor:
        """Return floats [..., maxk]: 1 where the i-th most likely class is the label.

        Labels are class numbers, with or without a last axis of 1, or one-hot (any scores: the highest counts).
        """
        pred, label = tensor(pred, "Accuracy.compute"), tensor(label, "Accuracy.compute")
        if isinstance(pred.shape[-1], int) and pred.shape[-1] < self.maxk:
            raise ValueError(f"Accuracy: the top {self.maxk} of {pred.shape[-1]} classes were asked for")
        if label.ndim == pred.ndim - 1:
            label = label.unsqueeze(-1)
        elif label.ndim != pred.ndim:
            raise ValueError(f"Accuracy: labels of shape {label.shape} do not fit scores of shape {pred.shape}")
        elif label.shape[-1] != 1:
            label = argmax(label, -1, keepdim=True)
        places = topk(pred, self.maxk, axis=-1)[1]
        return cast(places == cast_to(label, places.dtype), "float32")

    def update(self, correct: Any, *args: Any) -> Any:
        """Add what `compute` returned; return the accuracy of this batch, a list of them for several k."""
        array = as_array(correct, "Accuracy.update: correct")
        if array.ndim == 0 or array.shape[-1] < self.maxk:
            raise ValueError(f"Accuracy.update needs what compute returned, [..., {self.maxk}], not {array.shape}")
        count = array[..., 0].size
        found = [float(array[..., :k].sum()) for k in self.topk]
        self.total = [a + b for a, b in zip(self.total, found, strict=True)]
        self.count = [c + count for c in self.count]
        return _one_or_list([f / count if count else 0.0 for f in found])

    def reset(self) -> None:
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        return _one_or_list([t / c if c else 0.0 for t, c in zip(self.total, self.count, strict=True)])

    def name(self) -> list[str]:
        return self._names


def _one_or_list(values: list[float]) -> Any:
    return values[0] if len(values) == 1 else values


def accuracy(
    input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None
) -> Tensor:
    """Return the share of rows whose label is among the k highest of the scores [n, classes].

    Into the tensors `correct` and `total` of one element, where given, the numbers of such rows and of all are written.

    >>> import dy2st as paddle
    >>> float(paddle.metric.accuracy(paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]]), paddle.to_tensor([[1], [1]])))
    0.5
    """
    input, label = tensor(input, "accuracy"), tensor(label, "accuracy")
    if input.ndim != 2:
        raise ValueError(f"accuracy needs scores of 2 axes, not the shape {input.shape}")
    places = topk(input, k, axis=-1)[1]
    found = any_of(places == cast_to(label.reshape([-1, 1]), places.dtype), 1)
    if correct is not None:
        write(correct, sum_of(cast_to(found, correct.dtype)).reshape(correct.shape))
    if total is not None:
        write(total, numel(found).reshape(total.shape))
    return mean(cast_to(found, input.dtype))
