"""Containers of the user's classes: what stands for their content, and how a content goes in past their methods.

A class of the user's that derives from `list`, `dict`, ... may define what changes it (`append`, `__setitem__`). Those
methods run converted, once, where the user's code calls them; what they do through `super()` is what the side-effect
log has. So neither a copy of the content nor what is put back after the run may go through them again: what a trace
made of such a class is put together as an object is, its content being one part of it (`CONTENT`).
"""

from __future__ import annotations

import copy
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.kinds import DEQUE, DICT, LIST, ORDERED, SET, is_deque, is_dict, is_list, is_mutable_set, type_of
from dy2st.naming import is_plain_module
from dy2st.runtime.tracer.values.object_attributes import put_attribute

CONTENT = "its items"
"""The name that the content of a container of a user's class has among what it is made of."""
OF_C = (types.MethodDescriptorType, types.WrapperDescriptorType)
"""Methods of built-in classes, which a class of the user's may have by another name."""
_SETTINGS = ("default_factory", "maxlen")
_WITH_SETTINGS: tuple[type, ...] = (defaultdict, deque)
_CLASSES: tuple[type, ...] = (list, dict, set, deque)


def library_kind(kind: type) -> type:
    """Return the first class of those that `kind` derives from, itself included, that the user did not write."""
    return next(k for k in kind.__mro__ if k.__module__ == "builtins" or is_plain_module(k.__module__))


def is_of_users_class(x: Any) -> bool:
    """Return whether `x` is a container of a class that the user wrote."""
    return isinstance(x, _CLASSES) and library_kind(type_of(x)) is not type_of(x)


def settings(x: Any) -> dict[str, Any]:
    """Return what the library's class of a container keeps beside its content: how items are made, its length."""
    found = {name: getattr(x, name) for name in _SETTINGS if isinstance(x, _WITH_SETTINGS) and hasattr(x, name)}
    return {**found, "__dict__": None} if has_items_as_attributes(x) else found


def has_items_as_attributes(x: Any) -> bool:
    """Return whether the items of a dict are its attributes (`self.__dict__ = self`)."""
    return is_dict(x) and getattr(x, "__dict__", None) is x


def bare(kind: type) -> Any:
    """Return an instance of a user's class of which no code has run."""
    base: Any = library_kind(kind)
    return base.__new__(kind)


def put_part(x: Any, name: str, value: Any) -> None:
    """Let an object have an attribute, or a container its content or a setting of its library's class."""
    if name == CONTENT:
        fill(x, value)
    elif name == "maxlen" and is_deque(x):
        DEQUE.__init__(x, (), value)
    elif name == "__dict__":
        x.__dict__ = x
    elif name == "default_factory" and isinstance(x, defaultdict):
        x.default_factory = value
    else:
        put_attribute(x, name, value)


def own_method(x: Any, name: str) -> Callable[..., Any] | None:
    """Return a method that the class of a container has from the user."""
    for kind in type(x).__mro__:
        if kind.__module__ == "builtins" or is_plain_module(kind.__module__):
            return None
        if name in vars(kind):
            found = vars(kind)[name]
            return found if isinstance(found, (FunctionType, *OF_C)) else None
    return None


def has_method(kind: type, name: str) -> bool:
    """Return whether a library's class of containers has a method of this name, beside those of every object."""
    found = getattr(kind, name, None)
    return isinstance(found, (FunctionType, *OF_C)) and getattr(object, name, None) is not found


def copied(x: Any) -> Any:
    """Return a copy of a container: of the library's class where the class is the user's."""
    base = library_kind(type_of(x))
    return copy.copy(x) if base is type(x) else _as(base, x)


def plain_content(x: Any) -> Any:
    """Return a content of which no method is the user's: `x` itself where its class is not."""
    base = library_kind(type_of(x))
    return x if base is type(x) else _as(base, x)


def item_past_methods(x: Any, key: Any) -> Any:
    """Return an item of a container, by no method of the user's."""
    base: Any = library_kind(type_of(x))
    return x[key] if base is type(x) else base.__getitem__(x, key)


def _as(base: type, x: Any) -> Any:
    if base is list:
        return LIST.copy(x)
    if base is dict:
        return dict(DICT.items(x))
    if base is set:
        return set(SET.__iter__(x))
    if base is deque:
        return DEQUE(DEQUE.__iter__(x), x.maxlen)
    if base is OrderedDict:
        return OrderedDict((k, DICT.__getitem__(x, k)) for k in ORDERED.__iter__(x))
    if base in (defaultdict, Counter):
        made: dict[Any, Any] = defaultdict(x.default_factory) if base is defaultdict else Counter()
        DICT.update(made, dict(DICT.items(x)))
        return made
    return copy.copy(x)


def like(x: Any, content: Any) -> Any:
    """Return what a container is to hold as the library's class has it that it is of: with its order, its length."""
    if is_deque(x):
        return DEQUE(content, x.maxlen) if is_list(content) or is_deque(content) else content
    if type(content) is not DICT or type(x) is dict or (base := library_kind(type_of(x))) is dict:
        return content
    made = bare(base)
    if isinstance(x, defaultdict):
        made.default_factory = x.default_factory
    fill(made, content)
    return made


def fill(x: Any, content: Any) -> None:
    """Let a container hold `content`, by no method of the user's."""
    base: Any = library_kind(type_of(x))
    if is_list(x):
        LIST.__setitem__(x, slice(None), content)
        return
    base.clear(x)
    if not is_dict(x):
        base.update(x, content) if is_mutable_set(x) else base.extend(x, content)
        return
    for key, value in content.items():
        base.__setitem__(x, key, value)
