"""The collector of cycles, kept from looking through everything while a Program is made.

A trace makes tens of thousands of objects that stay, so Python looks through all objects of the process, those of every
imported module too, again and again: 10 ms each time, and a second for a Program of 10,000 operations, for what is
garbage anyway only afterwards. Meanwhile it looks at young objects only, and rarely.
"""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar

from dy2st.forks import Locked

K = TypeVar("K")
T = TypeVar("T")

RARE = 1_000_000
"""After how many objects more the collector looks at young ones meanwhile: what a trace leaves in cycles is no leak."""
_MEANWHILE = RARE, 1000, 1000
"""The thresholds meanwhile: older objects are looked at after so many times more."""
_MANY = 10_000
"""From so many young objects on a pass over them takes a millisecond and more."""
_MOST = 1_000_000
"""So many of them are taken for old between two full passes: what of them is garbage waits for the next."""


class _Askers(Locked):
    """Those who want the collector to work rarely, in all threads."""

    def __init__(self) -> None:
        super().__init__()
        self._inside: set[object] = set()
        self._before = 0, 0, 0
        self._full_passes, self._taken = 0, 0

    def enter(self) -> object:
        with self._lock:
            if not self._inside:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < RARE:
                    gc.set_threshold(*_MEANWHILE)
            asker = object()
            self._inside.add(asker)
            return asker

    def leave(self, *askers: object) -> None:
        with self._lock:
            was = bool(self._inside)
            self._inside.difference_update(askers)
            if was and not self._inside and gc.get_threshold() == _MEANWHILE:
                self._take_for_old()
                gc.set_threshold(*self._before)

    def _take_for_old(self) -> None:
        """Spare the caller a pass over what was made meanwhile: it would begin at once, and most of that stays."""
        young, full_passes = gc.get_count()[0], gc.get_stats()[2]["collections"]
        if full_passes != self._full_passes:
            self._full_passes, self._taken = full_passes, 0
        if young >= _MANY and self._taken + young <= _MOST:
            self._taken = self._taken + young if _make_old() else _MOST

    def forget(self) -> None:
        """Leave for threads that a new process has not."""
        self.leave(*self._inside)


_askers = _Askers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_askers.forget)


@contextmanager
def rarely() -> Iterator[None]:
    """Let the collector work rarely; when the last of those who asked for that is done, it is as it was."""
    asker = _askers.enter()
    try:
        yield
    finally:
        _askers.leave(asker)


@contextmanager
def kept() -> Iterator[None]:
    """Take what is made inside, modules say, for what stays: it is old at once, so no pass over young objects sees it.

    The import of thousands of functions would cause dozens of passes, and bring the next full one, 15 ms, nearer: into
    somebody's first call.
    """
    with rarely():
        yield
        _make_old()


def _make_old() -> bool:
    """Let only full passes look at the objects that there are; False, and nothing is done, where some are frozen.

    Thawing would thaw what the user has frozen too. To find that out takes as long as to count all these.
    """
    if gc.get_freeze_count():
        return False
    gc.freeze()
    gc.unfreeze()
    return True


def while_it_lives(function: Callable[[K], T]) -> Callable[[K], T]:
    """Keep what a function gives for a class or for code, told apart by identity, as long as that lives.

    A cache that holds them would hold what hangs on them too: with a class its static methods, whose Programs hold
    parameters. No callback of a weak reference forgets them: Python drops what a signal's handler raises in there.
    """
    found: dict[int, tuple[weakref.ref[K], T]] = {}
    most = 64

    @wraps(function)
    def of(x: K) -> T:
        nonlocal most
        known = found.get(id(x))
        if known is not None and known[0]() is x:
            return known[1]
        value = function(x)
        if len(found) >= most:
            for number, (living, _) in found.copy().items():
                if living() is None:
                    found.pop(number, None)
            most = 2 * len(found) + 64
        found[id(x)] = weakref.ref(x), value
        return value

    return of
