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


def bound_function(function: Any, instance: Any, slotted: Any, make: Callable[[Any], Any]) -> Any:
    """Return a static function as the method of an object, or of a class (`classmethod`); `make` makes a new one."""
    holder = None if isinstance(instance, type) else getattr(instance, "__dict__", None)
    if holder is None:  # an instance with slots only: what the function keeps of it keeps it alive
        found = slotted.get(instance)
        if found is None:
            found = slotted[instance] = make(instance)
        return found
    bound = holder.get(BOUND)
    if bound is None or bound.instance() is not instance:
        bound = holder[BOUND] = BoundFunctions(instance)
    found = bound.functions.get(function)
    if found is None:
        found = bound.functions[function] = make(instance)
    return found


def _nobody() -> None:
    return None


def _reference(instance: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(instance)
    except TypeError:  # no place for a weak reference: the object refers to itself
        return lambda: instance
