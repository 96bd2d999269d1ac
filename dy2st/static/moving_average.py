"""`paddle.static.ExponentialMovingAverage`: slow copies of parameters, for evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.assigning import set_value
from dy2st.functions.math.math import minimum
from dy2st.functions.shape.creation import full
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.gradients import recorder_now
from dy2st.static.scope import global_scope


class ExponentialMovingAverage:
    """decay * average + (1 - decay) * parameter, for each trained parameter, after each run of a Program.

    `update` adds this to the Program that is being built, behind its optimizer; `apply` gives the parameters their
    averages, which begin as 0 and are divided by 1 - decay^steps, until `restore`. With `thres_steps`, a variable, the
    decay is at most (1 + thres_steps) / (10 + thres_steps).
    """

    def __init__(self, decay: float = 0.999, thres_steps: Any = None, name: str | None = None):
        self._decay, self._thres_steps = decay, thres_steps
        self._name = name or unique_name.generate("ema")
        self._pairs: list[tuple[str, str]] = []
        self._power = f"{self._name}.decay_power"
        self._kept: dict[str, Any] = {}

    def update(self) -> None:
        """Add to the Program that is being built what follows its parameters."""
        recorder = recorder_now("ExponentialMovingAverage.update")
        decay = full([], self._decay, "float32")
        if self._thres_steps is not None:
            steps = self._thres_steps.astype("float32").reshape([])
            decay = minimum(decay, (steps + 1.0) / (steps + 10.0))
        power = recorder.create_state(self._power, [], dtypes.float32, 1.0)
        set_value(power, power * decay)
        recorder.trained.add(id(power))  # an optimizer's doing, which a clone for testing leaves out
        for name, state in list(recorder.states.items()):
            parameter: Tensor = state.tensor
            if not getattr(parameter, "trainable", False):
                continue
            slow = recorder.create_state(f"{name}.{self._name}", parameter.shape, parameter.dtype, 0.0)
            set_value(slow, decay * slow + (1.0 - decay) * parameter.detach())
            recorder.trained.add(id(slow))
            self._pairs.append((name, f"{name}.{self._name}"))

    @contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Give the parameters in the global scope their averages within a `with` block."""
        scope: Any = global_scope()
        weight = 1.0 - float(scope.find_var(self._power).get_tensor().numpy())
        for name, slow in self._pairs:
            holder = scope.find_var(name)
            self._kept[name] = holder.get_tensor().numpy()
            average = scope.find_var(slow).get_tensor().numpy()
            holder.set((average / weight if weight else average).astype(average.dtype))
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Give the parameters back what they had before `apply`."""
        scope: Any = global_scope()
        for name, value in self._kept.items():
            scope.find_var(name).set(value)
        self._kept = {}
