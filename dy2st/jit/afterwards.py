"""What each call of a Program does to Python objects at its end, such as to go on with a learning rate schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.runtime.impure import refusal
from dy2st.runtime.log import WriteLog


class Afterwards:
    """The part of a trace that keeps such actions; they are entries of the write log under ("done", id, number)."""

    log: WriteLog
    root: Builder
    builder: Builder
    attempts: list[Any]
    moved: set[int]
    """The objects that any action changes, by id."""

    def after_run(self, owner: Any, action: Callable[[], None]) -> None:
        """Let each call do something to a Python object at its end; nothing may read that object after this."""
        if self.builder is not self.root or self.attempts:
            raise refusal(
                "a Python object is changed in a branch, loop or `try` of which only the run will tell whether it runs",
                "do this at the end of the function, or outside of it",
            )
        self.moved.add(id(owner))
        self.log.set(("done", id(owner), len(self.log.overlays[0])), owner, action)

    def actions(self) -> list[Callable[[], None]]:
        """Return what a call does at its end."""
        return [action for key, action in self.log.overlays[0].items() if key[0] == "done"]

    def is_behind(self, owner: Any) -> bool:
        """Say whether an object is changed at the end of the call, after what the trace does now."""
        return id(owner) in self.moved and any(key[:2] == ("done", id(owner)) for key in self.log.overlays[0])

    def refuse_behind(self, owner: Any, name: str) -> None:
        """Raise TraceError for an attribute that is read after what the end of the call will do."""
        raise refusal(
            f".{name} of a {type(owner).__name__} is read after its step(), which a Program does at its end",
            "make step() of the schedule the last thing that the function does",
        )
