"""Guards that are looked at together by each call that hits the inline cache: in one call of machine code, once that
runs.

    if not watched(): watched = again()

`watched` is machine code that compares words of memory with what they were (watched_words.py). Where it
finds another one, which need not mean anything (an equal number is another object, a class has got some attribute), the
guards decide, and what they have allowed is what is compared from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.jit.guards.behavior_guards import BehaviourGuard
from dy2st.jit.guards.guards import GlobalGuard, Guard
from dy2st.runtime.backends.cpu.trampolines.call import bring_in
from dy2st.runtime.backends.cpu.trampolines.watched_words import WatchedWords
from dy2st.runtime.executor.select import may_be_native

MOST_RENEWALS = 100
"""So often the words are read anew: where they change all the time, only the guards are asked."""
_ASKED_BEFORE = 16
"""After so many calls the machine code is loaded, if nothing else needed it: calls with a tape have no other."""


class GuardFailed(Exception):
    """A guard does not hold."""


class GuardBatch:
    """Guards of one Program that stand in words of memory."""

    def __init__(self) -> None:
        self.guards: list[Any] = []
        self._renewals = self._asked = 0

    def takes(self, guard: Any) -> bool:
        """Take a guard, or say that it is none for this."""
        if type(guard) in (BehaviourGuard, GlobalGuard) or (type(guard) is Guard and guard.name == "cell_contents"):
            self.guards.append(guard)
            return True
        return False

    def beside(self) -> list[Any]:
        """Return the guards among these that do not stand in words."""
        return [own for guard in self.guards if type(guard) is BehaviourGuard for own in guard.names.values()]

    def again(self) -> Callable[[], bool]:
        """Ask the guards; return what compares the words from now on. `GuardFailed` where a guard does not hold."""
        self._asked += 1
        if self._asked == _ASKED_BEFORE and may_be_native():
            bring_in()
        made = self._lines() if self._renewals < MOST_RENEWALS else None
        if made is not None:
            self._renewals += 1
        if not all(guard.passes() for guard in self.guards):
            raise GuardFailed
        return made or unknown

    def _lines(self) -> Callable[[], bool] | None:
        lines = WatchedWords()
        return lines.unchanged() if all(_add(guard, lines) for guard in self.guards) else None


def unknown() -> bool:
    """Stand in for machine code that is not there: the guards are asked."""
    return False


def _add(guard: Any, lines: WatchedWords) -> bool:
    """Add the words of a guard; return whether it is known where they stand."""
    if isinstance(guard, GlobalGuard):
        lines.entry(guard.owner, guard.name)
        return True
    return guard.lines(lines) if isinstance(guard, BehaviourGuard) else lines.cell(guard.owner)
