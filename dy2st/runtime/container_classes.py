"""Containers of the user's classes: what stands for their content, and how a content goes in past their methods.

A class of the user's that derives from `list`, `dict`, ... may define what changes it (`append`, `__setitem__`). Those
methods run converted, once, where the user's code calls them; what they do through `super()` is what the write log
has. So neither a copy of the content nor what is put back after the run may go through them again.
"""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.naming import is_plain_module


def library_kind(kind: type) -> type:
    """Return the first class of those that `kind` derives from, itself included, that the user did not write."""
    return next(k for k in kind.__mro__ if k.__module__ == "builtins" or is_plain_module(k.__module__))


def own_method(x: Any, name: str) -> Callable[..., Any] | None:
    """Return a method that the class of a container has from the user."""
    for kind in type(x).__mro__:
        if kind.__module__ == "builtins" or is_plain_module(kind.__module__):
            return None
        if name in vars(kind):
            found = vars(kind)[name]
            return found if isinstance(found, FunctionType) else None
    return None


def copied(x: Any) -> Any:
    """Return a copy of a container: of the library's class where the class is the user's."""
    base = library_kind(type(x))
    return copy.copy(x) if base is type(x) else _as(base, x)


def plain_content(x: Any) -> Any:
    """Return a content of which no method is the user's: `x` itself where its class is not."""
    base = library_kind(type(x))
    return x if base is type(x) else _as(base, x)


def item_past_methods(x: Any, key: Any) -> Any:
    """Return an item of a container, by no method of the user's."""
    base: Any = library_kind(type(x))
    return x[key] if base is type(x) else base.__getitem__(x, key)


def _as(base: type, x: Any) -> Any:
    if base is list:
        return list.copy(x)
    if base is dict:
        return dict.copy(x)
    if base is set:
        return set(set.__iter__(x))
    if base is deque:
        return deque(deque.__iter__(x), x.maxlen)
    if base is OrderedDict:
        return OrderedDict((k, dict.__getitem__(x, k)) for k in OrderedDict.__iter__(x))
    if base in (defaultdict, Counter):
        made: Any = defaultdict(x.default_factory) if base is defaultdict else Counter()
        dict.update(made, dict.copy(x))
        return made
    return copy.copy(x)


def fill(x: Any, content: Any) -> None:
    """Let a container hold `content`, by no method of the user's."""
    base: Any = library_kind(type(x))
    if isinstance(x, list):
        list.__setitem__(x, slice(None), content)
        return
    base.clear(x)
    if not isinstance(x, dict):
        base.update(x, content) if isinstance(x, set) else base.extend(x, content)
        return
    for key, value in content.items():
        base.__setitem__(x, key, value)
