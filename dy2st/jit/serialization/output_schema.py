"""Abstract values as JSON for files: how an output, or something that was written, is made of a Program's results.

    {"tensor": ["float32[N, 4]", false]}    a tensor of this type, and whether no gradient flows into it
    {"number": "int"}                       a Python number that the run gives
    {"const": 3}  {"float": "nan"}  {"dtype": "float32"}    the same every time
    {"list": [t, ...]}  {"tuple": [t, ...]}  {"dict": [[key, t], ...]}
    {"new_list": t}  {"list_of": t}         a list that a branch or loop made; its elements
    {"one_of": [t, ...]}  {"unset": "y"}    one of several things; number 0 is "not assigned"
    {"object": ["plain", [[name, t], ...]]} an object: its attributes, and its items where it is a "dict" or a "list"

A named tuple is kept as a tuple, and an object comes back as one that has its attributes and items (`SavedObject`): its
class is code, and a file holds data only. Keys of dicts are strings, numbers, None, and lists for tuples of them.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import Any

from dy2st.dtypes import DType
from dy2st.errors import FileFormatError, ProgramSyntaxError
from dy2st.ir.type_text import DTYPES, parse_type, print_type
from dy2st.ir.types import TensorType
from dy2st.kinds import DICT, LIST, TUPLE, is_tuple
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Const,
    Items,
    ListOf,
    NewList,
    NewObject,
    Number,
    OneOf,
    TensorLike,
    Unset,
)
from dy2st.runtime.tracer.values.container_classes import CONTENT

MAX_DEPTH = 100
CONTAINERS = {"list": list, "tuple": tuple}
SAVEABLE = "tensors, numbers, strings, None, dtypes and lists, tuples and dicts of them can"

Json = Any


class NotSaveable(TypeError):
    """A Python object that has no place in a file."""


class SavedObject(types.SimpleNamespace):
    """What a loaded Program returns for an object: its attributes."""


class SavedDict(dict[Any, Any]):
    """What a loaded Program returns for a dict of the user's class; items are attributes too, and have numbers."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"no attribute or item {name!r} was saved")

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, int):
            return list(self.values())[key]
        raise KeyError(key)


class SavedList(list[Any]):
    """What a loaded Program returns for a list of the user's class."""


_OBJECTS: Mapping[str, type] = {"dict": SavedDict, "list": SavedList, "plain": SavedObject}


def constant_to_json(x: Any, what: str) -> Json:
    """Return a constant as JSON; NotSaveable names `what` holds something that is no plain value."""
    if x is None or type(x) in (bool, int, str):
        return {"const": x}
    if type(x) is float:
        return {"const": x} if math.isfinite(x) else {"float": repr(x)}
    if isinstance(x, DType):
        return {"dtype": x.name}
    if type(x) is LIST or is_tuple(x):
        kind = "list" if type(x) is LIST else "tuple"
        return {kind: [constant_to_json(item, what) for item in x]}
    if type(x) is DICT:
        return {"dict": [[key_to_json(k, what), constant_to_json(item, what)] for k, item in x.items()]}
    raise NotSaveable(f"{what} holds an object of type {type(x).__name__}, which cannot be saved: {SAVEABLE}")


def constant_from_json(data: Json, where: str) -> Any:
    """Return the constant that `constant_to_json` wrote; FileFormatError when it wrote none."""
    found = aval_from_json(data, where)
    try:
        return _constant(found)
    except TypeError:
        raise FileFormatError(f"{where}: a constant is expected, not {data!r:.60}") from None


def _constant(t: AbstractValue) -> Any:
    if isinstance(t, Const):
        return t.object
    if isinstance(t, Items):
        items = [_constant(item) for item in t.items]
        return dict(zip(t.keys, items, strict=True)) if t.keys is not None else t.kind(items)
    raise TypeError("not a constant")


def aval_to_json(t: AbstractValue, what: str) -> Json:
    """Return an abstract value as JSON; `what` names the whole for NotSaveable ("the output")."""
    write = _WRITERS.get(type(t))
    if write is None:
        raise NotSaveable(f"{what} holds a text with values of the run, which cannot be saved: {SAVEABLE}")
    return write(t, what)


def _items_to_json(t: Items, what: str) -> Json:
    items = [aval_to_json(i, what) for i in t.items]
    if t.keys is not None:
        return {"dict": [[key_to_json(k, what), i] for k, i in zip(t.keys, items, strict=True)]}
    kind: type[Any] = t.kind
    if issubclass(kind, (set, frozenset)):
        raise NotSaveable(f"{what} holds an object of type {t.kind.__name__}, which cannot be saved: {SAVEABLE}")
    return {"tuple" if issubclass(t.kind, tuple) else "list": items}


def _kind_of_object(t: NewObject, what: str) -> str:
    if CONTENT not in t.names:
        return "plain"
    found = next((name for name, kind in _OBJECTS.items() if issubclass(t.kind, kind.__mro__[1])), None)
    if found is None:
        raise NotSaveable(f"{what} holds a {t.kind.__name__}, which cannot be saved: {SAVEABLE}")
    return found


def _parts_to_json(t: NewObject, what: str) -> Json:
    return [[name, aval_to_json(i, what)] for name, i in zip(t.names, t.items, strict=True) if _is_part(name)]


def _is_part(name: Any) -> bool:
    """Return whether an object of a file may have an attribute of this name: methods of Python's are none."""
    return type(name) is str and (name == CONTENT or (name.isidentifier() and not name.startswith("__")))


def key_to_json(key: Any, what: str) -> Json:
    """Return a key of a dict as JSON; NotSaveable for what a file cannot hold."""
    if type(key) is TUPLE:
        return [key_to_json(k, what) for k in key]
    if key is None or type(key) in (bool, int, str) or (type(key) is float and math.isfinite(key)):
        return key
    raise NotSaveable(
        f"{what} has a dict with a key of type {type(key).__name__}; only strings, numbers and tuples can be saved"
    )


def key_from_json(data: Json, where: str, depth: int = 0) -> Any:
    """Return the key that `key_to_json` wrote."""
    if type(data) is LIST and depth < MAX_DEPTH:
        return tuple(key_from_json(k, where, depth + 1) for k in data)
    if data is None or type(data) in (bool, int, float, str):
        return data
    raise FileFormatError(f"{where}: {data!r:.60} is no key of a dict")


def aval_from_json(data: Json, where: str, depth: int = 0) -> AbstractValue:
    """Return the abstract value that `aval_to_json` wrote; FileFormatError says where the data are none."""
    if depth > MAX_DEPTH:
        raise FileFormatError(f"{where}: nested more than {MAX_DEPTH} deep")
    if type(data) is not DICT or len(data) != 1:
        raise FileFormatError(f"{where}: an object with one key is expected, not {data!r:.60}")
    ((kind, content),) = data.items()
    read = _READERS.get(kind)
    if read is None:
        raise FileFormatError(f"{where}: {kind!r:.60} is no kind of template")
    return read(content, where, depth)


def _read_tensor(content: Json, where: str, depth: int) -> AbstractValue:
    if type(content) is not LIST or len(content) != 2 or type(content[0]) is not str or type(content[1]) is not bool:
        raise FileFormatError(f"{where}: a tensor is a type and whether it stops gradients")
    try:
        found = parse_type(content[0])
    except ProgramSyntaxError as error:
        raise FileFormatError(f"{where}: {str(error).splitlines()[0]}") from error
    if not isinstance(found, TensorType):
        raise FileFormatError(f"{where}: {content[0]!r:.60} is no type of a tensor")
    return TensorLike(found, content[1])


def _read_number(content: Json, where: str, depth: int) -> AbstractValue:
    if content not in ("int", "float", "bool"):
        raise FileFormatError(f"{where}: {content!r:.60} is no kind of number")
    return Number(content)


def _read_const(content: Json, where: str, depth: int) -> AbstractValue:
    if content is not None and type(content) not in (bool, int, float, str):
        raise FileFormatError(f"{where}: {content!r:.60} is no constant")
    return Const(content)


def _read_float(content: Json, where: str, depth: int) -> AbstractValue:
    if content not in ("nan", "inf", "-inf"):
        raise FileFormatError(f"{where}: {content!r:.60} is not nan, inf or -inf")
    return Const(float(content))


def _read_dtype(content: Json, where: str, depth: int) -> AbstractValue:
    if type(content) is not str or content not in DTYPES:
        raise FileFormatError(f"{where}: {content!r:.60} is no dtype")
    return Const(DTYPES[content])


def _read_list(content: Json, where: str, depth: int) -> AbstractValue:
    return Items(list, _items(content, where, depth))


def _read_tuple(content: Json, where: str, depth: int) -> AbstractValue:
    return Items(tuple, _items(content, where, depth))


def _read_dict(content: Json, where: str, depth: int) -> AbstractValue:
    pairs = _pairs(content, f"{where}: a dict is a list of pairs of a key and a template")
    keys = tuple(key_from_json(pair[0], where) for pair in pairs)
    if len(set(keys)) != len(keys):
        raise FileFormatError(f"{where}: a dict has a key twice")
    return Items(dict, _items([pair[1] for pair in pairs], where, depth), keys)


def _pairs(content: Json, message: str) -> list[Any]:
    if type(content) is not LIST or not all(map(is_pair, content)):
        raise FileFormatError(message)
    return content


def is_pair(data: Json) -> bool:
    """Return whether data are two things."""
    return type(data) is LIST and len(data) == 2


def _read_object(content: Json, where: str, depth: int) -> AbstractValue:
    ((kind, said),) = _pairs([content], f"{where}: an object is a kind and its attributes")
    pairs = _pairs(said, f"{where}: the attributes of an object are pairs of a name and a template")
    names = tuple(pair[0] for pair in pairs)
    if type(kind) is not str or kind not in _OBJECTS or not all(map(_is_part, names)) or len({*names}) < len(names):
        raise FileFormatError(f"{where}: {kind!r:.40} is no kind of object, or an attribute has no name of its own")
    items = _items([pair[1] for pair in pairs], where, depth)
    inside = [kind for name, what in pairs if name == CONTENT for kind in what.get("new_list", ())]
    if inside not in {"plain": [[]], "dict": [["dict"]], "list": [["list"], ["list_of"]]}[kind]:
        raise FileFormatError(f"{where}: the items of an object are none of a {kind}")
    return NewObject(_OBJECTS[kind], names, items)


def _read_new_list(content: Json, where: str, depth: int) -> AbstractValue:
    return NewList(aval_from_json(content, where, depth + 1))


def _read_list_of(content: Json, where: str, depth: int) -> AbstractValue:
    return ListOf(aval_from_json(content, where, depth + 1))


def _read_unset(content: Json, where: str, depth: int) -> AbstractValue:
    if type(content) is not str:
        raise FileFormatError(f"{where}: a name is expected, not {content!r:.60}")
    return Unset(content)


def _read_one_of(content: Json, where: str, depth: int) -> AbstractValue:
    found = OneOf(_items(content, where, depth))
    if len(found.alternatives) < 2 or not isinstance(found.alternatives[0], Unset):
        raise FileFormatError(f"{where}: the first of several alternatives is 'unset'")
    return found


def _items(content: Json, where: str, depth: int) -> tuple[AbstractValue, ...]:
    if type(content) is not LIST:
        raise FileFormatError(f"{where}: a list is expected, not {content!r:.60}")
    return tuple(aval_from_json(item, where, depth + 1) for item in content)


_WRITERS: Mapping[type[AbstractValue], Callable[[Any, str], Json]] = {
    TensorLike: lambda t, what: {"tensor": [print_type(t.type), t.stop_gradient]},
    Number: lambda t, what: {"number": t.kind},
    Const: lambda t, what: constant_to_json(t.object, what),
    Items: _items_to_json,
    NewList: lambda t, what: {"new_list": aval_to_json(t.content, what)},
    NewObject: lambda t, what: {"object": [_kind_of_object(t, what), _parts_to_json(t, what)]},
    ListOf: lambda t, what: {"list_of": aval_to_json(t.element, what)},
    OneOf: lambda t, what: {"one_of": [aval_to_json(a, what) for a in t.alternatives]},
    Unset: lambda t, what: {"unset": t.name},
}
_READERS = {
    "tensor": _read_tensor, "number": _read_number, "const": _read_const, "float": _read_float, "dtype": _read_dtype,
    "list": _read_list, "tuple": _read_tuple, "dict": _read_dict, "new_list": _read_new_list, "list_of": _read_list_of,
    "unset": _read_unset, "one_of": _read_one_of, "object": _read_object,
}  # fmt: skip
