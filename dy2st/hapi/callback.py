"""Callback: what is called while a Model is trained, evaluated or run; and a list of them called as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Logs = dict[str, Any] | None


class Callback:
    """Base of the callbacks: override what should happen at a moment.

    `self.model` is the Model, `self.params` a dict with `epochs`, `steps`, `batch_size`, `verbose` and `metrics`.
    `logs` has the loss and the metrics so far, where there are any.

    >>> import dy2st as paddle
    >>> class Count(paddle.callbacks.Callback):
    ...     batches = 0
    ...     def on_train_batch_end(self, step, logs=None):
    ...         self.batches += 1
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Take the settings of a run."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Take the Model."""
        self.model = model

    def on_train_begin(self, logs: Logs = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: Logs = None) -> None:
        """After the last epoch."""

    def on_eval_begin(self, logs: Logs = None) -> None:
        """Before an evaluation; `logs` has `steps` and `metrics`."""

    def on_eval_end(self, logs: Logs = None) -> None:
        """After an evaluation."""

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Before a prediction."""

    def on_predict_end(self, logs: Logs = None) -> None:
        """After a prediction."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Before each epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """After each epoch."""

    def on_train_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Before each batch of training."""

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        """After each batch of training."""

    def on_eval_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Before each batch of an evaluation."""

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        """After each batch of an evaluation."""

    def on_predict_batch_begin(self, step: int, logs: Logs = None) -> None:
        """Before each batch of a prediction."""

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        """After each batch of a prediction."""


class CallbackList:
    """Several callbacks, called one after the other."""

    def __init__(self, callbacks: Iterable[Callback], model: Any, params: dict[str, Any]):
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            callback.set_model(model)
            callback.set_params(params)

    def call(self, moment: str, *arguments: Any) -> None:
        """Call `on_{moment}` of each."""
        for callback in self.callbacks:
            getattr(callback, f"on_{moment}")(*arguments)
