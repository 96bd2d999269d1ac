"""Work on a thread beside those of the user: one job at a time, none while the process forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

T = TypeVar("T")

_working = threading.RLock()


def apart() -> AbstractContextManager[object]:
    """Return what one holds while making code: nobody else makes any, and a fork of the process waits for the end.

    Locks that another thread holds when a process forks stay locked in the new process, for ever.
    """
    return _working


def _released() -> None:
    _working.release()


def _forgotten() -> None:
    """Begin with a free lock in a new process: the thread that waits there has another number than the one before."""
    global _working
    _working = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: _working.acquire(), after_in_parent=_released, after_in_child=_forgotten)


class Job(Generic[T]):
    """A function that runs beside, once. The process ends when it has ended."""

    def __init__(self, function: Callable[[], T]):
        self._function = function
        self._made: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="dy2st")
        self._thread.start()

    def _work(self) -> None:
        try:
            with apart():
                self._made.append(self._function())
        except BaseException as error:
            self._error = error

    def result(self) -> T | None:
        """Return what the function gave, None while it runs; its error is raised here."""
        if self._error is not None:
            raise self._error
        return self._made[0] if self._made else None

    def wait(self, seconds: float) -> None:
        """Wait until the function has ended, but not longer than that."""
        self._thread.join(seconds)
