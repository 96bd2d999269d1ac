"""ProgBarLogger: prints how far a run is, with the loss and the metrics."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from dy2st.hapi.callback import Callback, Logs

WIDTH = 30


class ProgBarLogger(Callback):
    """Print progress: nothing for `verbose` 0, a bar for 1, lines for 2, every `log_freq` batches."""

    def __init__(self, log_freq: int = 1, verbose: int = 2):
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self._started, self._steps, self._samples = 0.0, None, 0

    def on_train_begin(self, logs: Logs = None) -> None:
        if self.verbose:
            print("The loss is that of the current step, the metrics are means over the steps so far.")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        if self.verbose:
            print(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self._begin(self.params["steps"])

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        self._show(step, logs)

    def on_eval_begin(self, logs: Logs = None) -> None:
        self._announce("Eval", logs)

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        self._show(step, logs)

    def on_eval_end(self, logs: Logs = None) -> None:
        self._count("Eval")

    def on_predict_begin(self, logs: Logs = None) -> None:
        self._announce("Predict", logs)

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        self._show(step, logs)

    def on_predict_end(self, logs: Logs = None) -> None:
        self._count("Predict")

    def _announce(self, what: str, logs: Logs) -> None:
        if self.verbose:
            print(f"{what} begin...")
        self._begin((logs or {}).get("steps"))

    def _begin(self, steps: int | None) -> None:
        self._started, self._steps, self._samples = time.perf_counter(), steps, 0

    def _count(self, what: str) -> None:
        if self.verbose:
            print(f"{what} samples: {self._samples}")

    def _show(self, step: int, logs: Logs) -> None:
        logs = logs or {}
        self._samples += logs.get("batch_size", 0)
        done, last = step + 1, step + 1 == self._steps
        if not self.verbose or not (last or done % self.log_freq == 0):
            return
        spent = (time.perf_counter() - self._started) / done
        parts = [f"{k}: {_number(v)}" for k, v in logs.items() if k not in ("step", "batch_size")]
        place = f"step {done}/{self._steps}" if self._steps is not None else f"step {done}"
        bar = f" {_bar(done / self._steps)}" if self.verbose == 1 and self._steps else ""
        line = " - ".join([place + bar, *parts, f"{spent * 1000:.0f}ms/step"])
        if self.verbose == 1 and self._steps:
            sys.stdout.write(f"\r{line}" + ("\n" if last else ""))
            sys.stdout.flush()
        else:
            print(line)


def _bar(share: float) -> str:
    full = int(share * WIDTH)
    return "[" + ("=" * full if full == WIDTH else "=" * max(full - 1, 0) + ">" + "." * (WIDTH - max(full, 1))) + "]"


def _number(value: Any) -> str:
    return " ".join(f"{float(v):.4f}" for v in np.asarray(value).reshape(-1))
