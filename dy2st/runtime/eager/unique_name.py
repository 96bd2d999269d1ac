"""Names that count up: `linear_0`, `linear_1`, `linear_0.w_0`. Parameters and layers are called by them, as in Paddle.

The counters belong to the process; `guard` swaps them for the length of a `with`, so that a model built twice can get
the same names twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.forks import Locked
from dy2st.ir.context import current


class UniqueNames(Locked):
    """Count how often each key was asked for; safe to use from several threads."""

    def __init__(self, prefix: str = ""):
        self.prefix = prefix
        self._counts: dict[str, int] = {}
        super().__init__()

    def generate(self, key: str) -> str:
        """Return `key_0` at the first call with this key, `key_1` at the next, and so on."""
        with self._lock:
            number = self._counts.get(key, 0)
            self._counts[key] = number + 1
        return f"{self.prefix}{key}_{number}"


def _names() -> UniqueNames:
    process = current().process
    if process.names is None:
        process.names = UniqueNames()
    return process.names


def generate(key: str) -> str:
    """Return a name that begins with `key` and that this process has not given before.

    >>> with guard():
    ...     generate("fc"), generate("fc"), generate("conv")
    ('fc_0', 'fc_1', 'conv_0')
    """
    return _names().generate(key)


def switch(new_generator: UniqueNames | None = None) -> UniqueNames:
    """Put other counters in place (fresh ones by default); return those that were there."""
    old = _names()
    current().process.names = new_generator or UniqueNames()
    return old


@contextmanager
def guard(new_generator: UniqueNames | str | None = None) -> Iterator[None]:
    """Count from zero for the length of a `with`; a string becomes the prefix of every name."""
    fresh = UniqueNames(new_generator) if isinstance(new_generator, str) else new_generator
    old = switch(fresh)
    try:
        yield
    finally:
        switch(old)
