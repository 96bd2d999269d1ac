"""What each call of a Program does to Python objects at its end, such as to go on with a learning rate schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.tracer.effects.side_effect_log import WriteLog


class Afterwards:
    """The part of a trace that keeps such actions; they are entries of the write log under ("done", id, number)."""

    log: WriteLog
    root: Builder
    builder: Builder
    attempts: list[Any]
    moved: set[int]
    """The objects that any action changes, by id."""

    def is_surely_run(self) -> bool:
        """Say whether every run comes to this point, once."""
        return self.builder is self.root and not self.attempts

    def after_run(self, owner: Any, action: Callable[[], None], what: Any = None) -> None:
        """Let each call do something to a Python object at its end.

        Who reads the object after this is given what `owner.after(...)` of each `what` so far says of it.
        """
        if not self.is_surely_run():
            raise refusal(
                "a Python object is changed in a branch, loop or `try` of which only the run will tell whether it runs",
                "do this at the end of the function, or outside of it",
            )
        self.moved.add(id(owner))
        self.log.set(("done", id(owner), len(self.log.overlays[0])), owner, (action, what))

    def actions(self) -> list[Callable[[], None]]:
        """Return what a call does at its end."""
        return [done[0] for key, done in self.log.overlays[0].items() if key[0] == "done"]

    def behind(self, owner: Any) -> tuple[Any, ...]:
        """Return what the end of the call does to an object, of all that the trace has come past."""
        if id(owner) not in self.moved:
            return ()
        return tuple(done[1] for key, done in self.log.overlays[0].items() if key[:2] == ("done", id(owner)))
