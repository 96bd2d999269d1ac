"""The random generator: a seed and the number of the next draw.

Random ops are pure functions of (seed, draw number, element), so eager mode, a Program, and one loaded from a file
give the same numbers. Inside a trace the draw number is a state cell of the Program.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.forks import Locked
from dy2st.ir.context import current

_MAKING = threading.Lock()
_BESIDE, _APART = 2**62, 2**32
"""The first draw number for what is drawn while a run goes on in another thread; how far apart two runs are there."""


class Generator(Locked):
    """Hand out draw numbers; safe to use from several threads."""

    def __init__(self, seed: int | None = None):
        super().__init__()
        self.seed = int.from_bytes(os.urandom(4), "little") >> 1 if seed is None else seed
        self.draw, self._beside = 0, _BESIDE
        self._running: int | None = None
        """The thread of the run that goes on from `draw`; only its end tells how far."""

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed`, an int from 0 to 2**64 - 1; return the generator."""
        if not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise ValueError(f"seed must be an int from 0 to 2**64 - 1, not {seed!r}")
        with self._lock:
            self.seed, self.draw, self._beside, self._running = seed, 0, _BESIDE, None
        return self

    def next(self) -> tuple[int, int]:
        """Return the seed and a draw number that nobody else gets."""
        with self._lock:
            if self._runs_elsewhere():
                return self.seed, self._from_beside(1)
            draw = self.draw
            self.draw = draw + 1
            return self.seed, draw

    @contextmanager
    def run(self) -> Iterator[tuple[int, int]]:
        """Give a run of a Program the seed and its first draw number; it tells by `go_on_at` where it has come to."""
        me = threading.get_ident()
        with self._lock:
            inside = self._running is not None
            first = self._from_beside(_APART) if self._runs_elsewhere() else self.draw
            self._running = me if self._running is None else self._running
        try:
            yield self.seed, first
        finally:
            if not inside:
                with self._lock:
                    self._running = None if self._running == me else self._running

    def go_on_at(self, draw: int) -> None:
        """Draw from that number on, at the end of a run."""
        with self._lock:
            if draw < _BESIDE and not self._runs_elsewhere():
                self.draw = draw

    def _runs_elsewhere(self) -> bool:
        return self._running not in (None, threading.get_ident())

    def _from_beside(self, count: int) -> int:
        self._beside += count
        return self._beside - count

    def get_state(self) -> tuple[int, int]:
        """Return (seed, draw number)."""
        with self._lock:
            return self.seed, self.draw

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from a state that `get_state` gave; TypeError for anything else."""
        if not isinstance(state, tuple) or len(state) != 2 or not all(type(n) is int and n >= 0 for n in state):
            raise TypeError(f"a random state is what get_rng_state() gives, with pairs of ints, not {state!r:.60}")
        with self._lock:
            (self.seed, self.draw), self._running = state, None


def default_generator() -> Generator:
    """Return the process's generator."""
    process = current().process
    if process.generator is None:
        with _MAKING:
            process.generator = process.generator or Generator()
    return process.generator


def seed(seed: int) -> Generator:
    """Seed the default generator, so that all random numbers after it repeat; return the generator.

    >>> import dy2st as paddle
    >>> a = paddle.seed(7) and paddle.rand([2])
    >>> b = paddle.seed(7) and paddle.rand([2])
    >>> bool((a == b).all())
    True
    """
    trace = current().trace
    if trace is not None and trace.set_seed(int(seed)):
        return default_generator()
    return default_generator().manual_seed(int(seed))


def get_rng_state(device: Any = None) -> list[tuple[int, int]]:
    """Return the state of the default generator, for `set_rng_state`; it is one for all devices."""
    return [default_generator().get_state()]


def set_rng_state(state_list: list[tuple[int, int]]) -> None:
    """Restore a state that `get_rng_state` gave; TypeError for anything else."""
    if not isinstance(state_list, (list, tuple)) or len(state_list) != 1:
        raise TypeError(f"a random state is what get_rng_state() gives, a list of one pair, not {state_list!r:.60}")
    default_generator().set_state(state_list[0])
