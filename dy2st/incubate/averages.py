"""Optimizers around others: slow weights that follow fast ones, and the mean of the weights of the last steps.

M. Zhang et al., "Lookahead optimizer: k steps forward, 1 step back" (2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor


class LookAhead:
    """After each `k` steps of an optimizer the weights are taken back to slow ones, which go `alpha` of the way.

    The slow ones begin as the weights after the first step.
    """

    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None):
        if not 0.0 <= alpha <= 1.0 or k < 1:
            raise ValueError(f"LookAhead: alpha lies between 0 and 1 and k is positive, not {alpha} and {k}")
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, k
        self._parameters: list[Tensor] = list(inner_optimizer._parameter_list)
        self._slow: list[Tensor] = []
        self._steps = 0

    def step(self) -> None:
        """Do a step of the optimizer."""
        self.inner_optimizer.step()
        self._slow = self._slow or [p.detach().clone() for p in self._parameters]
        self._steps += 1
        if self._steps % self.k:
            return
        with no_grad():
            for slow, fast in zip(self._slow, self._parameters, strict=True):
                slow.set_value(slow + self.alpha * (fast.detach() - slow))
                fast.set_value(slow)

    def minimize(self, loss: Tensor, *args: Any, **keywords: Any) -> None:
        """Let gradients flow from a loss, and do a step."""
        loss.backward()
        self.step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner_optimizer, name)


class ModelAverage:
    """The mean of parameters over the last steps: `step` after each of the optimizer's, `apply` to use the mean.

    The window grows with the number of steps, `average_window_rate` of it, between `min_average_window` and
    `max_average_window`.
    """

    def __init__(
        self, average_window_rate: float, parameters: Any = None, min_average_window: int = 10000,
        max_average_window: int = 10000, name: str | None = None,
    ):  # fmt: skip
        if parameters is None:
            raise AttributeError("in eager mode ModelAverage needs its parameters: parameters=model.parameters()")
        self._rate, self._least, self._most = average_window_rate, min_average_window, max_average_window
        self._parameters: list[Tensor] = list(parameters)
        self._sums = [p.detach() * 0.0 for p in self._parameters]
        self._before, self._count, self._old, self._steps = list(self._sums), 0, 0, 0
        self._kept: list[Tensor] = []

    def step(self) -> None:
        """Take the parameters as they are into the mean."""
        self._steps += 1
        self._count += 1
        with no_grad():
            self._sums = [s + p.detach() for s, p in zip(self._sums, self._parameters, strict=True)]
        if self._count >= self._least and self._count >= min(self._most, int(self._steps * self._rate)):
            self._before, self._old = self._sums, self._count
            self._sums, self._count = [s * 0.0 for s in self._sums], 0

    def minimize(self, loss: Tensor, *args: Any, **keywords: Any) -> None:
        """Take the parameters into the mean."""
        self.step()

    @contextmanager
    def apply(self, executor: Any = None, need_restore: bool = True) -> Iterator[None]:
        """Give the parameters their means within a `with` block, or for good where `need_restore` is false."""
        self._kept = [p.detach().clone() for p in self._parameters]
        count = float(max(self._count + self._old, 1))
        for p, now, before in zip(self._parameters, self._sums, self._before, strict=True):
            p.set_value((now + before) / count)
        try:
            yield
        finally:
            if need_restore:
                self.restore()

    def restore(self, executor: Any = None) -> None:
        """Give the parameters back what they had before `apply`."""
        for p, value in zip(self._parameters, self._kept, strict=False):
            p.set_value(value)
        self._kept = []
