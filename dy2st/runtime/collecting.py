"""The collector of cycles, kept from looking through everything while a Program is made.

A trace makes tens of thousands of objects that stay, so Python looks through all objects of the process, those of every
imported module too, once or twice: 10 ms each time for what is garbage anyway only afterwards.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RARE = 200_000
"""After how many objects more the collector looks at young ones meanwhile: what a trace leaves in cycles is no leak."""
_lock = threading.Lock()
_depth = 0
_before = 0


@contextmanager
def rarely() -> Iterator[None]:
    """Let the collector work rarely; when the last of those who asked for that is done, it is as it was."""
    global _depth, _before
    with _lock:
        _depth += 1
        if _depth == 1:
            _before = _threshold(RARE)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and gc.get_threshold()[0] == RARE:  # else somebody has set another one meanwhile
                _threshold(_before)


def _threshold(young: int) -> int:
    """Set after how many objects young ones are looked at, where they are at all; return what it was."""
    before, *others = gc.get_threshold()
    if 0 < before < RARE or young < RARE:
        gc.set_threshold(young, *others)
    return before
