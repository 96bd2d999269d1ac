"""Work on a thread beside those of the user: one job at a time, none while the process forks."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dy2st.forks import ForkLock, started

_working = ForkLock(level=1)


def apart() -> ForkLock:
    """Return what one holds while making code: nobody else makes any, and a fork of the process waits for the end."""
    return _working


class BackgroundJob:
    """A function that runs beside, once; the process ends when it has ended. Errors are shown as of any thread."""

    def __init__(self, function: Callable[[], object]):
        self._function = function
        self._thread = started(threading.Thread(target=self._work, name="dy2st"))

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
