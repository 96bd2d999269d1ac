"""Schedules that rise and fall: warmup, one cycle, triangles; and one that falls when a metric stalls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dy2st.optimizer.lr.base import LRScheduler
from dy2st.runtime.eager.tensor import Tensor


class LinearWarmup(LRScheduler):
    """A line from start_lr to end_lr in warmup_steps epochs, then the rate (or scheduler) `learning_rate`."""

    def __init__(
        self, learning_rate: float | LRScheduler, warmup_steps: int, start_lr: float, end_lr: float,
        last_epoch: int = -1, verbose: bool = False,
    ):  # fmt: skip
        if not isinstance(learning_rate, (int, float, LRScheduler)):
            raise TypeError(
                f"LinearWarmup: the rate must be a number or a scheduler, not {type(learning_rate).__name__}"
            )
        if end_lr <= start_lr:
            raise ValueError(f"LinearWarmup: end_lr must be above start_lr, not {end_lr} and {start_lr}")
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            return (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_keys(self) -> None:
        self.keys = ["last_epoch", "last_lr"]
        if isinstance(self.learning_rate, LRScheduler):
            self.keys.append("learning_rate")


class ReduceOnPlateau(LRScheduler):
    """Multiply the rate by `factor` when the metric given to `step` has not got better for more than `patience` epochs.

    Better means lower in mode "min", higher in mode "max", by more than `threshold` (of the best where "rel"). After a
    change `cooldown` epochs pass before bad ones count again. The rate stays above `min_lr`.
    """

    def __init__(
        self, learning_rate: float, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0,
        epsilon: float = 1e-8, verbose: bool = False,
    ):  # fmt: skip
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceOnPlateau: mode must be 'min' or 'max', not {mode!r}")
        if factor >= 1.0:
            raise ValueError(f"ReduceOnPlateau: factor must be below 1, not {factor}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceOnPlateau: threshold_mode must be 'rel' or 'abs', not {threshold_mode!r}")
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.min_lr, self.epsilon = threshold_mode, cooldown, min_lr, epsilon
        self.best: float | None = None
        self.cooldown_counter = self.num_bad_epochs = 0
        self._started = False
        super().__init__(learning_rate, -1, verbose)
        self._started = True
        self.last_epoch = 0

    def get_lr(self) -> float:
        return self.last_lr

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go to the next epoch, whose metric this is."""
        if not self._started:
            return
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        metric = float(metrics.item() if isinstance(metrics, Tensor) else metrics)
        if self.best is None or self._better(metric, self.best):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            lower = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - lower > self.epsilon:
                self._set(lower)

    def _better(self, metric: float, best: float) -> bool:
        step = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        return metric < best - step if self.mode == "min" else metric > best + step

    def state_keys(self) -> None:
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]


class OneCycleLR(LRScheduler):
    """Up from max/divide_factor to max, then down to end_learning_rate, in total_steps (Smith and Topin, 2018)."""

    def __init__(
        self, max_learning_rate: float, total_steps: int, divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001, phase_pct: float = 0.3, anneal_strategy: str = "cos",
        three_phase: bool = False, last_epoch: int = -1, verbose: bool = False,
    ):  # fmt: skip
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(f"OneCycleLR: total_steps must be a positive int, not {total_steps!r}")
        if not 0.0 <= phase_pct <= 1.0:
            raise ValueError(f"OneCycleLR: phase_pct must be between 0 and 1, not {phase_pct}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}")
        start, up = max_learning_rate / divide_factor, phase_pct * total_steps
        if three_phase:
            if phase_pct >= 0.5:
                raise ValueError(f"OneCycleLR: phase_pct must be below 0.5 with three_phase, not {phase_pct}")
            self._marks = [0.0, up - 1, 2 * up - 2, total_steps - 1.0]
            self._rates = [start, max_learning_rate, start, end_learning_rate]
        else:
            self._marks = [0.0, up - 1, total_steps - 1.0]
            self._rates = [start, max_learning_rate, end_learning_rate]
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        super().__init__(start, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch > self.total_steps:
            raise ValueError(f"OneCycleLR: step {self.last_epoch} is past total_steps={self.total_steps}")
        last = len(self._marks) - 1
        i = next((i for i in range(1, last) if self.last_epoch <= self._marks[i]), last)
        low, high = self._marks[i - 1], self._marks[i]
        done = min((self.last_epoch - low) / (high - low), 1.0) if high > low else 1.0
        start, end = self._rates[i - 1], self._rates[i]
        if self.anneal_strategy == "linear":
            return start + (end - start) * done
        return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


class CyclicLR(LRScheduler):
    """Triangles from base to max learning rate (Smith, 2017); "triangular2" halves them, "exp_range" shrinks them."""

    def __init__(
        self, base_learning_rate: float, max_learning_rate: float, step_size_up: int, step_size_down: int | None = None,
        mode: str = "triangular", exp_gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle", last_epoch: int = -1, verbose: bool = False,
    ):  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', not {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR: scale_mode must be 'cycle' or 'iterations', not {scale_mode!r}")
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up <= 0 or down <= 0:
            raise ValueError(f"CyclicLR: step sizes must be positive, not {step_size_up} and {down}")
        self.cycle_size, self.step_up_pct = step_size_up + down, step_size_up / (step_size_up + down)
        self.amplitude, self.exp_gamma, self.mode = max_learning_rate - base_learning_rate, exp_gamma, mode
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        cycle = 1 + self.last_epoch // self.cycle_size
        done = 1.0 + self.last_epoch / self.cycle_size - cycle
        height = done / self.step_up_pct if done <= self.step_up_pct else (1 - done) / (1 - self.step_up_pct)
        return self.base_lr + self.amplitude * height * self._scale(
            cycle if self.scale_mode == "cycle" else self.last_epoch
        )

    def _scale(self, at: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(at)
        if self.mode == "exp_range":
            return self.exp_gamma**at
        return 1.0 / 2.0 ** (at - 1) if self.mode == "triangular2" else 1.0
