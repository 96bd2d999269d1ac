"""Names: the one place that invents identifiers for generated source, and that tells libraries from the user's modules.

A generated name is known because `fresh` made it, never because of how it looks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache


class Names:
    """The identifiers in use in one piece of source, and new ones beside them.

    >>> names = Names(["x", "_break"])
    >>> names.fresh("then"), names.fresh("break"), names.fresh("break")
    ('_then', '_break_1', '_break_2')
    """

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)

    def fresh(self, base: str) -> str:
        """Return `_base`, or `_base_1`, `_base_2`, ... where that is taken, and take it."""
        name, turn = f"_{base}", 0
        while name in self._taken:
            turn += 1
            name = f"_{base}_{turn}"
        self._taken.add(name)
        return name


_LIBRARIES = ("dy2st", "numpy", "cupy", "scipy", "gast", "astor", "llvmlite")
_RUNNERS = ("pytest", "_pytest", "pluggy", "xdist", "execnet", "__channelexec__", "hypothesis", "IPython", "ipykernel")
_PLAIN = frozenset((*sys.stdlib_module_names, *_LIBRARIES, *_RUNNERS))


@lru_cache(maxsize=4096)
def is_plain_module(name: str | None) -> bool:
    """Return whether a module, by its dotted name, is a library that converted code takes as it is, not the user's.

    What `collections.namedtuple` writes into a class says that it is of a module of this class's own.
    """
    return (name or "").partition(".")[0] in _PLAIN or (name or "").startswith("namedtuple_")
