"""Locks and forks: one that another thread holds when the process forks would stay locked in the new process, for ever.

1. A fork waits until nobody is at work behind a `ForkLock` or a `Gate`. It takes them outermost first, as threads that
   need two of them do, so that neither waits for the other.
2. What may take long, as a trace, is not waited for: the lock of a `Locked` object is a new one in the new process.
"""

from __future__ import annotations

import os
import threading
import weakref


class ForkLock:
    """A lock that a thread may take again, and that a fork takes; of two, the one of the lower level is taken first."""

    def __init__(self, level: int):
        self.level = level
        self._lock = threading.RLock()
        _waited_for.append(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    close, open = __enter__, __exit__

    def renew(self) -> None:
        """Begin anew, in a new process."""
        self._lock = threading.RLock()


class Gate:
    """What any number of threads may be behind, but not while a fork goes on."""

    def __init__(self, level: int):
        self.level = level
        self.renew()
        _waited_for.append(self)

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody in, and wait until all are out."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._inside)

    def open(self) -> None:
        """Let threads in again."""
        with self._changed:
            self._closed = False
            self._changed.notify_all()

    def renew(self) -> None:
        """Begin anew, in a new process."""
        self._changed, self._inside, self._closed = threading.Condition(), 0, False


class Locked:
    """An object with a lock of its own, `_lock`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _owners[id(self)] = self


_waited_for: list[ForkLock | Gate] = []
_owners: weakref.WeakValueDictionary[int, Locked] = weakref.WeakValueDictionary()


def _before() -> None:
    for one in sorted(_waited_for, key=lambda one: one.level):
        one.close()


def _after_in_parent() -> None:
    for one in _waited_for:
        one.open()


def _after_in_child() -> None:
    for one in _waited_for:
        one.renew()
    for owner in list(_owners.values()):
        owner._lock = threading.RLock()  # pyright: ignore[reportPrivateUsage] (the class stands above)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
