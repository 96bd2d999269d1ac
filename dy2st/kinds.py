"""What Python values of any type are, also to a type checker.

`isinstance(x, list)` tells it nothing of what the list holds, `type(x)` and `vars(x)` nothing at all. These say that it
may be anything, and run as fast: each is the function of Python's that it stands for.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")


def _is(kind: type[T]) -> Callable[[object], TypeIs[T]]:
    """Return the function that `isinstance` calls for one class."""
    return cast("Callable[[object], TypeIs[T]]", vars(type)["__instancecheck__"].__get__(kind))


type_of: Callable[[object], type[Any]] = type
variables_of: Callable[[object], dict[str, Any]] = vars
numbered: Callable[[Any], Iterator[tuple[int, Any]]] = enumerate
derives: Callable[[type[Any], type[Any]], bool] = issubclass
"""`issubclass`, where the class is the same one to the type checker afterwards."""

LIST: type[list[Any]] = list
"""For `type(x) is LIST` and `LIST.append(x, item)`; the next ones likewise."""
DICT: type[dict[Any, Any]] = dict
TUPLE: type[tuple[Any, ...]] = tuple
SET: type[set[Any]] = set
ORDERED: type[OrderedDict[Any, Any]] = OrderedDict
DEQUE: type[deque[Any]] = deque
_CLASS: type[type[Any]] = type
_GENERATOR: type[GeneratorType[Any, Any, Any]] = GeneratorType
_SLICE: type[slice[Any, Any, Any]] = slice
_PARTIAL: type[partial[Any]] = partial

is_list = _is(LIST)
is_tuple = _is(TUPLE)
is_dict = _is(DICT)
is_deque = _is(DEQUE)
is_mutable_set = _is(SET)
is_int = _is(int)
is_generator = _is(_GENERATOR)
is_class = _is(_CLASS)
is_partial = _is(_PARTIAL)
is_slice = _is(_SLICE)


def is_sequence(x: object) -> TypeIs[list[Any] | tuple[Any, ...]]:
    """Return whether a value is a list or a tuple."""
    return isinstance(x, (list, tuple))


def is_container(x: object) -> TypeIs[list[Any] | tuple[Any, ...] | dict[Any, Any]]:
    """Return whether a value is a list, a tuple or a dict."""
    return isinstance(x, (list, tuple, dict))


def is_set(x: object) -> TypeIs[set[Any] | frozenset[Any]]:
    """Return whether a value is a set, frozen or not."""
    return isinstance(x, (set, frozenset))


def is_iterator(x: object) -> TypeIs[Iterator[Any]]:
    """Return whether a value is an iterator."""
    return isinstance(x, Iterator)
