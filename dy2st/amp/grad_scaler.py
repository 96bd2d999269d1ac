"""Loss scaling: gradients of float16 stay above its smallest numbers, and steps with infinite ones are left out.

P. Micikevicius et al., "Mixed Precision Training" (2018).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from dy2st.dtypes import float16
from dy2st.functions.math.comparison import isfinite
from dy2st.ir.context import current
from dy2st.optimizer.native_step import MOST_AT_ONCE
from dy2st.optimizer.optimizer import Optimizer
from dy2st.optimizer.recorded_updates import UpdateRecorder, Updates, is_plain, recorded
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.tensor import Tensor


class GradScaler:
    """Scale a loss up and its gradients down again; the scale follows what float16 can hold.

    Parameters
    ----------
    init_loss_scaling
        The scale at first.
    incr_ratio, incr_every_n_steps
        It grows by this factor after so many steps in a row with finite gradients.
    decr_ratio, decr_every_n_nan_or_inf
        It shrinks by this factor after so many steps in a row without.
    use_dynamic_loss_scaling
        Whether it changes at all.

    >>> import dy2st as paddle
    >>> x = paddle.create_parameter([1], "float32")
    >>> sgd, scaler = paddle.optimizer.SGD(0.1, parameters=[x]), paddle.amp.GradScaler(init_loss_scaling=8.0)
    >>> scaler.scale((x * 2).sum()).backward()
    >>> x.grad.item()
    16.0
    >>> scaler.step(sgd)
    >>> scaler.update()
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ):
        if incr_ratio <= 1.0 or not 0.0 < decr_ratio < 1.0:
            raise ValueError("GradScaler: incr_ratio must be above 1, and decr_ratio between 0 and 1")
        if init_loss_scaling <= 0 or incr_every_n_steps < 1 or decr_every_n_nan_or_inf < 1:
            raise ValueError("GradScaler: the scale and the numbers of steps must be positive")
        self._enable, self._dynamic = bool(enable), bool(use_dynamic_loss_scaling)
        self._scale = float(init_loss_scaling)
        self._incr_ratio, self._decr_ratio = float(incr_ratio), float(decr_ratio)
        self._incr_every_n_steps, self._decr_every_n_nan_or_inf = incr_every_n_steps, decr_every_n_nan_or_inf
        self._good, self._bad = 0, 0
        self._found: dict[int, bool] = {}
        self._native = _NativeDivision()

    def scale(self, var: Tensor) -> Tensor:
        """Return the loss times the scale."""
        return var * self._scale if self._enable else var

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale; once before each step, `step` does it too.

        Raises RuntimeError the second time.
        """
        if not self._enable:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() was called twice since the last update()")
        finite = self._native.divided(optimizer, self._scale)
        if finite is None:
            finite = True
            for p in optimizer._parameter_list:
                if p.grad is None:
                    continue
                p.grad = _divided(p.grad.detach(), self._scale)
                finite = finite and bool(isfinite(p.grad).all())
        self._found[id(optimizer)] = not optimizer._spread.agreed(finite)

    def step(self, optimizer: Optimizer) -> None:
        """Unscale the gradients (if that was not done) and update the parameters, unless a gradient is not finite."""
        if not self._enable:
            optimizer.step()
            return
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        if not self._found[id(optimizer)]:
            optimizer.step()

    def update(self) -> None:
        """Adapt the scale to the gradients since the last update."""
        found = any(self._found.values())
        self._found.clear()
        if not self._enable or not self._dynamic:
            return
        self._good, self._bad = (0, self._bad + 1) if found else (self._good + 1, 0)
        if self._bad == self._decr_every_n_nan_or_inf:
            self._scale, self._bad = max(self._scale * self._decr_ratio, 1.0), 0
        if self._good == self._incr_every_n_steps:
            self._scale, self._good = self._scale * self._incr_ratio, 0

    def minimize(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> tuple[list[Any], list[tuple[Tensor, Any]]]:
        """Do `step` and `update` with the gradients of scaled.backward(); return what `optimizer.minimize` does."""
        self.step(optimizer)
        self.update()
        return [], [(p, p.grad) for p in optimizer._parameter_list if p.grad is not None]

    def is_enable(self) -> bool:
        """Return whether the scaler does anything."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Return whether the scale changes."""
        return self._dynamic

    def get_init_loss_scaling(self) -> float:
        """Return the scale as it is now."""
        return self._scale

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Set the scale."""
        self._scale = float(new_init_loss_scaling)

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the settings and the counts of steps; nothing where the scaler is off."""
        if not self._enable:
            return {}
        return {
            "scale": np.array([self._scale], np.float32),
            "incr_ratio": self._incr_ratio,
            "decr_ratio": self._decr_ratio,
            "incr_every_n_steps": self._incr_every_n_steps,
            "decr_every_n_nan_or_inf": self._decr_every_n_nan_or_inf,
            "incr_count": self._good,
            "decr_count": self._bad,
            "use_dynamic_loss_scaling": self._dynamic,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave; RuntimeError for an empty one."""
        if not self._enable:
            return
        if not state_dict:
            raise RuntimeError("load_state_dict: the state is empty, as that of a scaler that is off")
        self._scale = float(np.asarray(state_dict["scale"]).reshape(-1)[0])
        self._incr_ratio, self._decr_ratio = state_dict["incr_ratio"], state_dict["decr_ratio"]
        self._incr_every_n_steps = state_dict["incr_every_n_steps"]
        self._decr_every_n_nan_or_inf = state_dict["decr_every_n_nan_or_inf"]
        self._good, self._bad = state_dict["incr_count"], state_dict["decr_count"]
        self._dynamic = state_dict["use_dynamic_loss_scaling"]


for _method in vars(GradScaler).values():
    if isinstance(_method, FunctionType) and _method.__name__ not in ("__init__", "state_dict", "load_state_dict"):
        _method.__dy2st_convert__ = True  # pyright: ignore[reportFunctionMemberAccess] (to_static converts it)

AmpScaler = GradScaler


class _NativeDivision:
    """Divides the gradients of an optimizer by the scale, and looks at them, natively from the second time on."""

    def __init__(self) -> None:
        self._kinds: dict[int, Any] = {}
        """The gradients of an optimizer, by its id, as they were the last time."""

    def divided(self, optimizer: Optimizer, scale: Any) -> bool | None:
        """Divide; return whether all gradients are finite, or None where this is to be done one by one."""
        if current().trace is not None:
            return None
        parameters = [p for p in optimizer._parameter_list if p._grad is not None]
        arrays = [p._grad.payload for p in parameters]  # type: ignore[union-attr]
        kinds = [(x.dtype, x.shape) for x in arrays]
        known, self._kinds[id(optimizer)] = self._kinds.get(id(optimizer)), kinds
        if known != kinds or not all(map(is_plain, arrays)):
            return None
        del arrays
        parts = [parameters[at : at + MOST_AT_ONCE] for at in range(0, len(parameters), MOST_AT_ONCE)]
        programs = [program for part in parts if (program := _division(part)) is not None]
        if len(programs) < len(parts):
            return None
        finite = [_run(program, part, float(scale)) for program, part in zip(programs, parts, strict=True)]
        return all(finite)


def _division(parameters: list[Tensor]) -> Updates | None:
    """Return the Program that divides the gradients of some parameters and looks at them."""
    grads: list[Tensor] = [p._grad for p in parameters]  # type: ignore[misc]

    def write(trace: UpdateRecorder) -> list[Tensor]:
        scale = trace.take_number("scale")
        for g in grads:
            trace.take_as(g)
        finite = None
        for g in grads:
            new = _divided(g, scale)
            inplace.write(g, new)
            mine = isfinite(new).all()
            finite = mine if finite is None else finite & mine
        return [] if finite is None else [finite]

    return recorded(("divide", *((g.dtype, tuple(g.payload.shape)) for g in grads)), write)


def _run(program: Updates, parameters: list[Tensor], scale: float) -> bool:
    """Run such a Program; gradients that somebody holds get new memory."""
    own = all(inplace.own_gradient(p) is not None for p in parameters)
    kind = DonatedInputs if own else list
    made = program.run(kind([scale, *[p._grad.payload for p in parameters]]))  # type: ignore[union-attr]
    assert made is not None  # the gradients are those of the Program
    for p, new in zip(parameters, made[1:], strict=True):
        if p._grad.payload is not new:  # type: ignore[union-attr]
            p.grad = Tensor(new)
    return bool(made[0])


def _divided(gradient: Tensor, scale: Any) -> Tensor:
    """Return a gradient divided by a scale, which float16 may not hold."""
    if gradient.dtype is float16:
        return (gradient.astype("float32") / scale).astype("float16")
    return gradient / scale
