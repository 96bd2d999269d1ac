"""What each call of a Program does to Python objects at its end, such as to go on with a learning rate schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.tracer.effects.trace import Trace


class DeferredEffects:
    """The actions that a trace keeps for the end; they are entries of its log under ("done", id, number)."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._changed: set[int] = set()
        """The objects that any action changes, by id."""

    def is_surely_run(self) -> bool:
        """Return whether every run comes to this point, once."""
        return self.trace.builder is self.trace.root and not self.trace.attempts

    def add(self, owner: Any, action: Callable[[], None], what: Any = None) -> None:
        """Let each call do something to a Python object at its end.

        Who reads the object after this is given what `owner.after(...)` of each `what` so far says of it.
        """
        if not self.is_surely_run():
            raise refusal(
                "a Python object is changed in a branch, loop or `try` of which only the run will tell whether it runs",
                "do this at the end of the function, or outside of it",
            )
        self._changed.add(id(owner))
        log = self.trace.log
        log.set(("done", id(owner), len(log.overlays[0])), owner, (action, what))

    def actions(self) -> list[Callable[[], None]]:
        """Return what a call does at its end."""
        return [done[0] for key, done in self.trace.log.overlays[0].items() if key[0] == "done"]

    def of(self, owner: Any) -> tuple[Any, ...]:
        """Return what the end of the call does to an object, of all that the trace has come past."""
        if id(owner) not in self._changed:
            return ()
        return tuple(done[1] for key, done in self.trace.log.overlays[0].items() if key[:2] == ("done", id(owner)))
