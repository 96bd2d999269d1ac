"""How often Python's threads take turns, while one of them makes code.

A thread that comes back from a call of LLVM waits for Python's lock, by default 5 ms where another thread has work.
The calls of LLVM are hardly longer than that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.forks import Locked

OFTEN = 0.0003
"""Seconds after which a thread lets another one in."""


class _Askers(Locked):
    """How many want threads to take turns often, and what the interval was before the first."""

    def __init__(self) -> None:
        super().__init__()
        self._count, self._before = 0, 0.0

    def add(self, count: int) -> None:
        with self._lock:
            if not self._count:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(OFTEN, self._before))
            self._count += count
            if not self._count:
                sys.setswitchinterval(self._before)

    def forget(self) -> None:
        """Leave for threads that a new process has not."""
        if self._count:
            self.add(-self._count)


_askers = _Askers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_askers.forget)


@contextmanager
def often() -> Iterator[None]:
    """Let threads take turns often; when the last of those who asked for that is done, it is as it was."""
    _askers.add(1)
    try:
        yield
    finally:
        _askers.add(-1)
