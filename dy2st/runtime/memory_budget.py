"""How many bytes a run of a Program holds at most, beside its inputs.

It is the memory of this machine, or of the group that the process is in; `DY2ST_MEMORY_LIMIT` says another number of
bytes, `set_flags({"FLAGS_cpu_memory_limit_mb": ...})` one of MiB at any time. Native code asks before it makes a block
(budget.py). A plan looks at each array that an operation has made; an array counts until nobody holds it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from dy2st import config

HOW = "DY2ST_MEMORY_LIMIT or the flag FLAGS_cpu_memory_limit_mb says how many bytes"
FLAG = "FLAGS_cpu_memory_limit_mb"
SMALL = 1 << 12
"""Smaller arrays are not counted."""
_ELEMENT = 100
"""About how many bytes an element of a list takes, whatever it is."""
_MOST = (1 << 62) - 1
_LIMIT_OF_GROUP = "/sys/fs/cgroup/memory.max"


@cache
def memory_of_machine() -> int:
    """Return how many bytes this process may have at most; where nothing says it, what addresses can tell apart."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        found = 1 << 47
    try:
        with open(_LIMIT_OF_GROUP, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return found
    return min(found, int(text)) if text.isdigit() else found


def _at_first() -> int:
    try:
        wanted = config.memory_limit()
    except ValueError as error:
        warnings.warn(f"{error}: it is not heeded", stacklevel=2)
        wanted = None
    return min(memory_of_machine() if wanted is None else wanted, _MOST)


_word = ctypes.c_uint64(_at_first())


def limit() -> int:
    """Return how many bytes a run may hold."""
    return _word.value


def address() -> int:
    """Return where that stands, for native code."""
    return ctypes.addressof(_word)


def set_mebibytes(number: Any) -> None:
    """Let a run hold so many MiB from now on; with None, what it may hold at first."""
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise ValueError(f"{FLAG} is a whole number of MiB from 1 on, not {number!r:.60}")
    _word.value = _at_first() if number is None else min(number << 20, _MOST)


class Meter:
    """What the arrays hold that a run of a plan has made.

    Those that are gone are looked for where it would be too much. No callbacks tell: Python drops what the handler of
    a signal raises in one.
    """

    def __init__(self, inputs: Sequence[Any]):
        self.held, self._looked_at = 0, 64
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        """Who owns memory that is counted, and how many bytes; none of an input's. By its number."""
        for x in inputs:
            if type(x) is np.ndarray and x.nbytes >= SMALL:
                owner = _owner(x)
                self._known[id(owner)] = weakref.ref(owner), 0

    def look(self, x: Any) -> None:
        """Count what an operation gave; MemoryError where it is more than a run may hold."""
        if type(x) is list:
            self._refuse(_ELEMENT * len(x))
        elif type(x) is np.ndarray and x.nbytes >= SMALL:
            owner = _owner(x)
            number, size = id(owner), owner.nbytes
            known = self._known.get(number)
            if known is not None:
                if known[0]() is owner:
                    return
                self.held -= known[1]  # another one stood there, which is gone
                del self._known[number]
            if len(self._known) > self._looked_at:
                self._forget_gone()
                self._looked_at = 2 * len(self._known) + 64
            self._refuse(size)
            self._known[number] = weakref.ref(owner), size
            self.held += size

    def _forget_gone(self) -> None:
        self._known = {
            number: (owner, size) for number, (owner, size) in self._known.copy().items() if owner() is not None
        }
        self.held = sum(size for _, size in self._known.values())

    def _refuse(self, more: int) -> None:
        if self.held + more > limit():
            self._forget_gone()
        if self.held + more > limit():
            raise MemoryError(f"a run may hold {limit()} bytes, and this is {self.held + more}: {HOW}")


def _owner(x: Any) -> Any:
    return x.base if type(x.base) is np.ndarray else x


class _Here(threading.local):
    meter: Meter | None = None


here = _Here()
"""The meter of the plan that this thread runs."""
