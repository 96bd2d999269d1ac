"""Work on a thread beside those of the user: one job at a time, none while the process forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

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


class Job:
    """A function that runs beside, once; the process ends when it has ended. Errors are shown as of any thread."""

    def __init__(self, function: Callable[[], object]):
        self._function = function
        self._thread = threading.Thread(target=self._work, name="dy2st")
        self._thread.start()

    def _work(self) -> None:
        with apart():
            self._function()

    @property
    def runs(self) -> bool:
        """Whether the function has not ended."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait until the function has ended, but not longer than that."""
        self._thread.join(seconds)
