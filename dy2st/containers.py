"""Python's containers among values of any type.

`isinstance(x, list)` tells a type checker nothing of what the list holds; these say that it may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeIs

LIST: type[list[Any]] = list
"""As `list` in `type(x) is LIST`; so are the next ones."""
DICT: type[dict[Any, Any]] = dict
TUPLE: type[tuple[Any, ...]] = tuple


def is_list(x: object) -> TypeIs[list[Any]]:
    """Return whether a value is a list."""
    return isinstance(x, list)


def is_tuple(x: object) -> TypeIs[tuple[Any, ...]]:
    """Return whether a value is a tuple."""
    return isinstance(x, tuple)


def is_sequence(x: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or a tuple."""
    return isinstance(x, (list, tuple))


def is_dict(x: object) -> TypeIs[dict[Any, Any]]:
    """Return whether a value is a dict."""
    return isinstance(x, dict)


def is_set(x: object) -> TypeIs[set[Any] | frozenset[Any]]:
    """Return whether a value is a set, frozen or not."""
    return isinstance(x, (set, frozenset))


def is_container(x: object) -> TypeIs[list[Any] | tuple[Any, ...] | dict[Any, Any]]:
    """Return whether a value is a list, a tuple or a dict."""
    return isinstance(x, (list, tuple, dict))
