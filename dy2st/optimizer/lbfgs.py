"""LBFGS: steps along a direction made of the last changes of the gradient.

J. Nocedal, "Updating quasi-Newton matrices with limited storage" (1980).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dy2st.ir.context import replaced
from dy2st.nn.maths import ArrayMaths
from dy2st.optimizer.line_search import Point, strong_wolfe
from dy2st.optimizer.optimizer import Optimizer
from dy2st.runtime.eager import device, inplace
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.side_effect_check import refuse_in_trace
from dy2st.runtime.eager.tensor import Tensor


class LBFGS(Optimizer):
    """Quasi-Newton steps: `step(closure)` calls the closure, which gives the loss and its gradients, several times.

    Parameters
    ----------
    learning_rate
        The length of a step, or the first one that the line search tries.
    max_iter, max_eval
        How many directions a call of `step` takes, and how often it calls the closure (1.25 max_iter by default).
    tolerance_grad, tolerance_change
        A step ends where no gradient is larger, or where neither parameters nor loss change more.
    history_size
        How many changes are remembered.
    line_search_fn
        None for fixed steps, or "strong_wolfe".

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([3.0, -2.0], stop_gradient=False)
    >>> optimizer = paddle.optimizer.LBFGS(line_search_fn="strong_wolfe", parameters=[x])
    >>> def closure():
    ...     optimizer.clear_grad()
    ...     loss = ((x - 1.0) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> x.numpy().round(3).tolist()
    [1.0, 1.0]
    """

    _not_settings: ClassVar[frozenset[str]] = Optimizer._not_settings | {
        "_changes", "_direction", "_last_gradient", "_last_step", "_iterations", "_calls", "_last_value", "_shares",
    }  # fmt: skip

    def __init__(
        self, learning_rate: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn is {line_search_fn!r}, not None or 'strong_wolfe'")
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name=name)
        self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self._changes: list[tuple[Any, Any]] = []
        self._direction: Any = None
        self._last_gradient: Any = None
        self._last_step, self._iterations, self._calls, self._last_value = 0.0, 0, 0, 0.0
        self._shares: list[float] = []

    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor:  # type: ignore[override]
        """Take up to `max_iter` steps; return the loss as it was before."""
        refuse_in_trace("LBFGS.step()")
        if closure is None:
            raise TypeError("LBFGS.step needs a closure that clears the gradients, runs backward and returns the loss")
        loss = closure()
        value, gradient = float(loss), self._gradient()
        calls = 1
        for turn in range(self.max_iter):
            if np.abs(gradient).max() <= self.tolerance_grad:
                break
            direction, self._last_value = self._next_direction(gradient), value
            slope = float(gradient @ direction)
            if slope > -self.tolerance_change:
                break
            step = self.get_lr() * (min(1.0, 1.0 / float(np.abs(gradient).sum())) if self._iterations == 1 else 1.0)
            start = Point(0.0, value, gradient, slope)
            if self.line_search_fn is not None:
                end, more = self._searched(closure, start, direction, step)
            else:
                last = turn == self.max_iter - 1
                end, more = self._moved(closure, start, direction, step, last), int(not last)
            calls += more
            self._last_step, change = end.step, abs(end.value - value)
            value, gradient = end.value, end.gradient
            small = float(np.abs(direction * end.step).max()) <= self.tolerance_change or change < self.tolerance_change
            if calls >= self.max_eval or small:
                break
        self._calls += calls
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return what steps remember, under "state" by Paddle's names: nothing before the first step.

        `d`, `alpha`, `prev_flat_grad` and `prev_loss` are the last direction, the step along it, and gradient and loss
        at its start; `old_yk`, `old_sk` and `ro` the changes of gradient and parameters that are remembered, and what
        their products divide by; `al` the shares of these changes in the direction; `H_diag` the scale of the first
        guess.
        """
        found = super().state_dict()
        if not self._iterations:
            return {**found, "state": {}}
        products = [float(y @ s) for y, s in self._changes]
        shares: list[Any] = [_tensor(share, self._direction) for share in self._shares]
        y = self._changes[-1][0] if self._changes else None
        return {**found, "state": {
            "func_evals": self._calls, "n_iter": self._iterations, "d": Tensor(self._direction),
            "alpha": self._last_step, "old_yk": [Tensor(y) for y, _ in self._changes],
            "old_sk": [Tensor(s) for _, s in self._changes],
            "ro": [_tensor(1.0 / p, self._direction) for p in products],
            "H_diag": _tensor(1.0 if y is None else products[-1] / float(y @ y), self._direction),
            "prev_flat_grad": Tensor(self._last_gradient), "prev_loss": self._last_value,
            "al": [*shares, *[None] * (self.history_size - len(shares))],
        }}  # fmt: skip

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave, so that the next step goes on from there."""
        given = dict(state_dict)
        state = given.pop("state", {})
        super().set_state_dict(given)
        if not state:
            return
        pairs = zip(state["old_yk"], state["old_sk"], strict=True)
        self._changes = [(_as_array(y), _as_array(s)) for y, s in pairs]
        self._direction, self._last_gradient = _as_array(state["d"]), _as_array(state["prev_flat_grad"])
        self._last_step, self._last_value = float(state["alpha"]), float(state["prev_loss"])
        self._iterations, self._calls = int(state["n_iter"]), int(state["func_evals"])
        self._shares = [float(share) for share in state.get("al", ()) if share is not None]

    def _next_direction(self, gradient: Any) -> Any:
        """Remember the last change and return minus the gradient times the inverse Hessian that the changes suggest."""
        self._iterations += 1
        if self._iterations > 1:
            y, s = gradient - self._last_gradient, self._direction * self._last_step
            if float(y @ s) > 1e-10:
                self._changes = [*self._changes, (y, s)][-self.history_size :]
        direction, shares = -gradient, []
        for y, s in reversed(self._changes):
            share = float(s @ direction) / float(y @ s)
            direction = direction - share * y
            shares.append(share)
        if self._changes:
            y, s = self._changes[-1]
            direction = direction * (float(y @ s) / float(y @ y))
        for (y, s), share in zip(self._changes, reversed(shares), strict=True):
            direction = direction + (share - float(y @ direction) / float(y @ s)) * s
        self._direction, self._last_gradient, self._shares = direction, gradient, shares[::-1]
        return direction

    def _searched(self, closure: Callable[[], Tensor], start: Point, direction: Any, step: float) -> tuple[Point, int]:
        """Search along the line, and leave the parameters at the point that was found."""
        before = [p.array().copy() for p in self._parameter_list]

        def evaluate(length: float) -> Point:
            self._write(before, direction, length)
            value, gradient = float(closure()), self._gradient()
            return Point(length, value, gradient, float(gradient @ direction))

        found, count = strong_wolfe(evaluate, start, step)
        self._write(before, direction, found.step)
        return found, count

    def _moved(self, closure: Callable[[], Tensor], start: Point, direction: Any, step: float, last: bool) -> Point:
        self._write([p.array() for p in self._parameter_list], direction, step)
        if last:
            return Point(step, start.value, start.gradient, start.slope)
        value, gradient = float(closure()), self._gradient()
        return Point(step, value, gradient, float(gradient @ direction))

    def _write(self, before: list[Any], direction: Any, step: float) -> None:
        at = 0
        for p, array in zip(self._parameter_list, before, strict=True):
            part = direction[at : at + array.size].reshape(array.shape)
            at += array.size
            with replaced(grad=False):
                inplace.write_memory(p, array + (step * part).astype(array.dtype))

    def _gradient(self) -> Any:
        """Return the gradients as one vector, clipped and with weight decay; zeros where there is none."""
        parts: list[Any] = []
        for group in self._groups:
            pairs = [(p, p.grad) for p in group["params"]]
            clip = group.get("grad_clip", self._grad_clip)
            for p, g in clip(pairs) if clip is not None else pairs:
                array = p.array()
                xp = namespace_of(array)
                part = xp.zeros_like(array) if g is None else g.array()
                decay = self.decay_of(p, group)
                parts.append((part if decay is None else part + decay.term(array, ArrayMaths(xp))).ravel())
        return namespace_of(parts[0]).concatenate(parts)


def _tensor(value: float, like: Any) -> Tensor:
    return Tensor(namespace_of(like).asarray(value, like.dtype))


def _as_array(value: Any) -> Any:
    """Return a vector of a state, which may come from a file, as an array on the device of today."""
    return device.move(
        value.array("a state") if isinstance(value, Tensor) else np.asarray(value), device.current_place()
    )
