"""Precision, recall, and the area under the ROC curve, of predictions between 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.metric.base import Metric, as_array


class _Counts(Metric):
    """Counts of true positives and of one kind of mistakes, at the threshold 0.5."""

    def __init__(self, name: str | None = None):
        self._name = name or type(self).__name__.lower()
        self.reset()

    def reset(self) -> None:
        self.tp = 0
        self._mistakes = 0

    def _add(self, preds: Any, labels: Any) -> None:
        kind = type(self).__name__
        guessed = as_array(preds, f"{kind}: preds").reshape(-1) >= 0.5
        truth = as_array(labels, f"{kind}: labels").reshape(-1)
        if guessed.shape != truth.shape:
            raise ValueError(f"{kind}: {guessed.size} predictions were given with {truth.size} labels")
        truth = truth == 1
        self.tp += int((guessed & truth).sum())
        self._mistakes += int(self._mistaken(guessed, truth).sum())

    def _mistaken(self, guessed: np.ndarray, truth: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not say which mistakes it counts")

    def update(self, preds: Any, labels: Any) -> None:
        """Add predictions in [0, 1] and labels 0 or 1."""
        self._add(preds, labels)

    def accumulate(self) -> float:
        total = self.tp + self._mistakes
        return self.tp / total if total else 0.0

    def name(self) -> str:
        return self._name


class Precision(_Counts):
    """True positives over all that were predicted positive.

    >>> import dy2st as paddle
    >>> metric = paddle.metric.Precision()
    >>> metric.update(paddle.to_tensor([0.9, 0.8, 0.1]), paddle.to_tensor([1, 0, 1]))
    >>> metric.accumulate()
    0.5
    """

    @property
    def fp(self) -> int:
        """The false positives."""
        return self._mistakes

    def _mistaken(self, guessed: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return guessed & ~truth


class Recall(_Counts):
    """True positives over all that are positive."""

    @property
    def fn(self) -> int:
        """The false negatives."""
        return self._mistakes

    def _mistaken(self, guessed: np.ndarray, truth: np.ndarray) -> np.ndarray:
        return ~guessed & truth


class Auc(Metric):
    """The area under the ROC curve, by trapezoids over `num_thresholds` + 1 bins of the predictions."""

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str | None = None):
        if curve != "ROC":
            raise ValueError(f"Auc: curve must be 'ROC', not {curve!r}")
        if not isinstance(num_thresholds, int) or num_thresholds < 1:
            raise ValueError(f"Auc: num_thresholds must be a positive int, not {num_thresholds!r}")
        self._num_thresholds, self._name = num_thresholds, name or "auc"
        self.reset()

    def reset(self) -> None:
        self._positive = np.zeros(self._num_thresholds + 1)
        self._negative = np.zeros(self._num_thresholds + 1)

    def update(self, preds: Any, labels: Any) -> None:
        """Add probabilities [n, 2] (of which column 1 counts), [n, 1] or [n], and labels 0 or 1."""
        preds = as_array(preds, "Auc: preds")
        preds = preds[:, 1] if preds.ndim == 2 and preds.shape[1] == 2 else preds.reshape(-1)
        labels = as_array(labels, "Auc: labels").reshape(-1)
        if preds.shape != labels.shape:
            raise ValueError(f"Auc: {preds.size} predictions were given with {labels.size} labels")
        if preds.size and not (preds.min() >= 0.0 and preds.max() <= 1.0):
            raise ValueError("Auc: predictions must be probabilities, from 0 to 1")
        bins = (preds * self._num_thresholds).astype(np.int64)
        size = self._num_thresholds + 1
        self._positive += np.bincount(bins[labels != 0], minlength=size)
        self._negative += np.bincount(bins[labels == 0], minlength=size)

    def accumulate(self) -> float:
        hits, misses = np.cumsum(self._positive[::-1]), np.cumsum(self._negative[::-1])
        if not hits[-1] or not misses[-1]:
            return 0.0
        heights = (hits + np.concatenate([[0.0], hits[:-1]])) / 2.0
        return float((self._negative[::-1] * heights).sum() / (hits[-1] * misses[-1]))

    def name(self) -> str:
        return self._name
