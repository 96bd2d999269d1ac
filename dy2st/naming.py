"""Names that nobody has taken: the one place that invents identifiers for generated source.

A generated name is known because `fresh` made it, never because of how it looks.
"""

from __future__ import annotations

from collections.abc import Iterable


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
