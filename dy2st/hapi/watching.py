"""Callbacks that act on what they see: checkpoints, learning rates, an early end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dy2st.hapi.callback import Callback, Logs
from dy2st.optimizer.lr import LRScheduler as Scheduler


class ModelCheckpoint(Callback):
    """Save the Model every `save_freq` epochs as `save_dir/EPOCH`, and at the end as `save_dir/final`."""

    def __init__(self, save_freq: int = 1, save_dir: str | None = None):
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self.save_dir is not None and epoch % self.save_freq == 0:
            self.model.save(str(Path(self.save_dir) / str(epoch)))

    def on_train_end(self, logs: Logs = None) -> None:
        if self.save_dir is not None:
            self.model.save(str(Path(self.save_dir) / "final"))


class LRScheduler(Callback):
    """Step the optimizer's scheduler after each batch (`by_step`) or each epoch (`by_epoch`)."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False):
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("LRScheduler: by_step and by_epoch exclude each other")
        self.by_step, self.by_epoch = by_step, by_epoch

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        if self.by_step:
            self._step()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self.by_epoch:
            self._step()

    def _step(self) -> None:
        rate = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(rate, Scheduler):
            rate.step()


class _Monitor(Callback):
    """A callback that watches whether a number of the evaluation gets better."""

    def __init__(self, monitor: str, mode: str, least: float):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode is {mode!r}, not 'auto', 'min' or 'max'")
        self.monitor, self.min_delta = monitor, abs(least)
        self.grows = mode == "max" or (mode == "auto" and "acc" in monitor)
        self.start = -np.inf if self.grows else np.inf
        self.best = self.start

    def on_train_begin(self, logs: Logs = None) -> None:
        self.best = self.start

    def value(self, logs: Logs) -> float | None:
        """Return the number that is watched, None where there is none."""
        found = (logs or {}).get(self.monitor)
        return None if found is None else float(np.asarray(found).reshape(-1)[0])

    def is_better(self, value: float) -> bool:
        """Return whether a number is better than the best by more than `min_delta`."""
        return value > self.best + self.min_delta if self.grows else value < self.best - self.min_delta


class EarlyStopping(_Monitor):
    """End the training where a number of the evaluation was not better `patience` times in a row (or once, for 0).

    `baseline` is what has to be beaten at first; with `save_best_model` (and a `save_dir` in `fit`) the best Model is
    saved as `save_dir/best_model`.
    """

    def __init__(
        self, monitor: str = "loss", mode: str = "auto", patience: int = 0, verbose: int = 1, min_delta: float = 0,
        baseline: float | None = None, save_best_model: bool = True,
    ):  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.save_best_model = patience, verbose, save_best_model
        self.start = self.start if baseline is None else baseline
        self.wait, self.stopped_epoch, self._epoch = 0, 0, 0

    def on_train_begin(self, logs: Logs = None) -> None:
        super().on_train_begin(logs)
        self.wait = 0

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._epoch = epoch

    def on_eval_end(self, logs: Logs = None) -> None:
        value = self.value(logs)
        if value is None:
            return
        if self.is_better(value):
            self.best, self.wait = value, 0
            folder = self.params.get("save_dir")
            if self.save_best_model and folder is not None:
                self.model.save(str(Path(folder) / "best_model"))
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.model.stop_training, self.stopped_epoch = True, self._epoch
            if self.verbose:
                print(f"Epoch {self._epoch + 1}: early stopping, {self.monitor} was best at {self.best:.5f}")


class ReduceLROnPlateau(_Monitor):
    """Multiply the learning rate by `factor` where a number of the evaluation was not better for `patience` times."""

    def __init__(
        self, monitor: str = "loss", factor: float = 0.1, patience: int = 10, verbose: int = 1, mode: str = "auto",
        min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0,
    ):  # fmt: skip
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, not {factor}")
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.wait, self.resting = 0, 0

    def on_eval_end(self, logs: Logs = None) -> None:
        value = self.value(logs)
        if value is None:
            return
        if self.resting:
            self.resting, self.wait = self.resting - 1, 0
        if self.is_better(value):
            self.best, self.wait = value, 0
        elif not self.resting:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce()

    def _reduce(self) -> None:
        optimizer: Any = self.model._optimizer
        before = optimizer.get_lr()
        if before > self.min_lr:
            rate = max(before * self.factor, self.min_lr)
            optimizer.set_lr(rate)
            self.resting, self.wait = self.cooldown, 0
            if self.verbose:
                print(f"ReduceLROnPlateau: the learning rate is now {rate}")
