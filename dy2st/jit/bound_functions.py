"""The static methods of one object: kept by the object itself, so that they end with it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

BOUND = "__dy2st_static__"
"""The name under which an object keeps its methods that are static functions."""


class BoundFunctions:
    """The static functions of one object, kept by the object itself, so that they end with it; copies have none."""

    def __init__(self, instance: Any = None):
        self.instance: Callable[[], Any] = _nobody if instance is None else _reference(instance)
        self.functions: dict[Any, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> BoundFunctions:
        return BoundFunctions()

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunctions, ()


def _nobody() -> None:
    return None


def _reference(instance: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(instance)
    except TypeError:  # no place for a weak reference: the object refers to itself
        return lambda: instance
