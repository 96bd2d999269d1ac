"""LRScheduler: a learning rate that changes from epoch to epoch (or step to step)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from dy2st.functions.shape.creation import full
from dy2st.ir.context import current, replaced
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.side_effect_check import in_trace, refusal, refuse_in_trace
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.sentinels import MISSING


class Ahead:
    """A schedule as it will be after some steps: what Programs read that do these at their end."""

    def __init__(self, schedule: LRScheduler, steps: tuple[Any, ...]):
        self.schedule, self.steps = schedule, steps

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copying and pickling ask for
            raise AttributeError(name)
        with replaced(trace=None):
            twin = _twin(self.schedule)
            for epoch in self.steps:
                twin._go(epoch)
            return getattr(twin, name)


def _twin(schedule: LRScheduler) -> LRScheduler:
    """Return a schedule that goes on by itself from where this one is; of the package's own, which change no other."""
    if not is_plain_module(type(schedule).__module__):
        raise refusal(
            f"a {type(schedule).__name__} is read after its step(), which a Program does at its end",
            "make step() of the schedule the last thing that the function does",
        )
    made = copy.copy(schedule)
    vars(made)["_tensor"] = None
    for name, value in vars(schedule).items():
        if name != "_tensor":
            vars(made)[name] = _twin(value) if isinstance(value, LRScheduler) else copy.copy(value)
    made.verbose = False
    return made


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
        self._ahead: dict[tuple[Any, ...], Ahead] = {}
        refuse_in_trace("making a learning rate schedule")
        self.step()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ("get_lr", "_get_closed_form_lr"):
            if name in vars(cls):
                vars(cls)[name].__dy2st_convert__ = True  # so that a trace sees which attributes it reads
        if "step" in vars(cls) and is_plain_module(cls.__module__):
            vars(cls)["step"].__dy2st_convert__ = True

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        followed: Tensor | None = self.__dict__.get("_tensor")
        if name == "last_lr" and followed is not None:
            followed.payload[...] = value

    def __call__(self) -> float:
        return current().trace.item(self.tensor) if in_trace() else self.last_lr

    @property
    def tensor(self) -> Tensor:
        """The rate as a 0-D float64 tensor whose memory follows it: what Programs read."""
        if in_trace():
            trace = current().trace
            if steps := trace.deferred.of(self):
                ahead = self.after(steps)
                return trace.note_attribute(ahead, "_rate", ahead._rate)
            rate = trace.log.get(("attr", id(self), "last_lr"))
            if rate is not MISSING:
                return full([], rate, "float64")
        if self._tensor is None:
            self._tensor = self._rate
        return self._tensor

    @property
    def _rate(self) -> Tensor:
        made = Tensor(np.asarray(self.last_lr, np.float64))
        made.name = "learning_rate"
        return made

    def after(self, steps: tuple[Any, ...]) -> Ahead:
        """Return what the schedule will be after calls of `step` with these arguments; for a trace."""
        return self._ahead.setdefault(steps, Ahead(self, steps))

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one.

        In a function that becomes a Program this is done at the end of each call, and in the Program where only the run
        tells whether it comes to this.
        """
        if not in_trace():
            self._go(epoch)
            return
        trace = current().trace
        written = trace.log.get(("attr", id(self), "last_epoch")) is not MISSING
        if trace.deferred.is_surely_run() and not written:
            trace.deferred.add(self, lambda: self._go(epoch), epoch)
        elif trace.deferred.of(self):
            what = "step() of a learning rate schedule in a branch, loop or `try`, behind one that stands in none"
            raise refusal(what, "make one step() of them, behind the branch or loop")
        else:
            trace.callable(type(self)._go)(self, epoch)

    def _go(self, epoch: int | None) -> None:
        """Go to the next epoch, or to a given one."""
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

    _go.__dy2st_convert__ = True  # type: ignore[attr-defined]
    _set.__dy2st_convert__ = True  # type: ignore[attr-defined]

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
            if not hasattr(self, key):
                continue
            value = getattr(self, key)
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
            self._tensor.payload[...] = self.last_lr

    set_dict = set_state_dict
    state_dict.__dy2st_convert__ = True  # type: ignore[attr-defined]
    state_keys.__dy2st_convert__ = True  # type: ignore[attr-defined]
