"""LRScheduler: a learning rate that changes from epoch to epoch (or step to step)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.ir.context import current
from dy2st.runtime.impure import in_trace, refusal, refuse_in_trace
from dy2st.runtime.log import MISSING
from dy2st.runtime.tensor import Tensor


class LRScheduler:
    """Base of the schedulers: `get_lr` says the rate from `last_epoch`, `base_lr` and `last_lr`; `step` goes on.

    Parameters
    ----------
    learning_rate
        The rate that the schedule starts from.
    last_epoch
        The epoch to go on from; -1 starts anew.
    verbose
        Whether each change is printed.
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        if not isinstance(learning_rate, (int, float)):
            raise TypeError(f"a scheduler needs a number as learning rate, not {type(learning_rate).__name__}")
        if learning_rate < 0:
            raise ValueError(f"the learning rate must not be negative, not {learning_rate}")
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self._tensor: Tensor | None = None
        refuse_in_trace("making a learning rate schedule")
        self.step()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ("get_lr", "_get_closed_form_lr"):
            if name in vars(cls):
                vars(cls)[name].__dy2st_convert__ = True  # so that a trace sees which attributes it reads

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        followed: Tensor | None = self.__dict__.get("_tensor")
        if name == "last_lr" and followed is not None:
            followed._payload[...] = value

    def __call__(self) -> float:
        return current().trace.item(self.tensor) if in_trace() else self.last_lr

    @property
    def tensor(self) -> Tensor:
        """The rate as a 0-D float64 tensor whose memory follows it: what Programs read."""
        if in_trace() and current().trace.is_behind(self):
            raise refusal(
                "a learning rate is read after step() of its schedule, which a Program does at the end of the call",
                "make step() of the schedule the last thing that the function does",
            )
        if in_trace() and current().trace.log.get(("attr", id(self), "last_lr")) is not MISSING:
            raise refusal(
                ".last_lr of a learning rate schedule is set in a function that reads the rate",
                "set it outside of the function",
            )
        if self._tensor is None:
            self._tensor = Tensor(np.asarray(self.last_lr, np.float64))
            self._tensor.name = "learning_rate"
        return self._tensor

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one; in a function that becomes a Program, at the end of each call."""
        if in_trace():
            current().trace.after_run(self, lambda: self.step(epoch))
            return
        if epoch is None:
            self.last_epoch += 1
            self._set(self.get_lr())
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            self._set(self.get_lr() if closed is None else closed())

    def _set(self, rate: float) -> None:
        self.last_lr = float(rate)
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """Return the rate of `last_epoch`; every subclass says how."""
        raise NotImplementedError(f"{type(self).__name__} does not say its learning rate: define `get_lr`")

    # ---- saving ----------------------------------------------------------------------------------------------------
    def state_keys(self) -> None:
        """Say in `self.keys` which attributes `state_dict` saves."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """Return what the schedule needs to go on."""
        self.state_keys()
        found: dict[str, Any] = {}
        for key in self.keys:
            if key not in self.__dict__:
                continue
            value = self.__dict__[key]
            found[key] = value.state_dict() if isinstance(value, LRScheduler) else value
        return found

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave."""
        refuse_in_trace("set_state_dict() of a learning rate schedule")
        self.state_keys()
        missing = [key for key in self.keys if key in self.__dict__ and key not in state_dict]
        if missing:
            raise RuntimeError(f"the state of a {type(self).__name__} lacks {', '.join(missing)}")
        for key in self.keys:
            if key not in state_dict:
                continue
            mine = self.__dict__.get(key)
            if isinstance(mine, LRScheduler):
                mine.set_state_dict(state_dict[key])
            else:
                self.__dict__[key] = state_dict[key]
        if self._tensor is not None:
            self._tensor._payload[...] = self.last_lr

    set_dict = set_state_dict
