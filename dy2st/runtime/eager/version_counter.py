"""How often the elements of a tensor were written, which its views share with it, and what these views are.

With it the tape finds out that something it needs was overwritten, and a tensor that leaves its memory
(copy_on_write.py) finds the views that go with it.
"""

from __future__ import annotations

import weakref
from typing import Any

BY_PROGRAM = 2
"""Kept by a Program that stands for several ops, each of which may not have kept it (composite.py)."""
_FEW = 64
"""From as many views on, those that are gone are forgotten whenever there are twice as many."""


class VersionCounter:
    """The state of some memory: of one tensor, and of its views."""

    __slots__ = ("kept", "number", "spoiled", "views")

    def __init__(self, number: int = 0, spoiled: bool = False):
        self.number = number
        self.kept: int = False
        """Whether the tape keeps the memory for an operation of which this operand needs no gradient, or `BY_PROGRAM`.
        """
        self.spoiled = spoiled
        """Whether the first memory of the tensor was overwritten before the tensor left it."""
        self.views: list[weakref.ref[Any]] = []
        """The views, in the order in which they were made; some are gone."""

    def overwrite(self) -> None:
        """Note that the memory was written in place."""
        self.spoiled = self.spoiled or self.number == 0
        self.number += 1

    def note(self, view: Any) -> None:
        """Note a view."""
        count = len(self.views)
        if count >= _FEW and count & (count - 1) == 0:
            self.views = [one for one in self.views if one() is not None]
        self.views.append(weakref.ref(view))
