"""A tuple at run time. It is not a Python tuple, because a pair is a variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Bundle:
    """Hold the items of a tuple value."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Any]):
        self.items = tuple(items)

    def __repr__(self) -> str:
        return f"Bundle{self.items}"
