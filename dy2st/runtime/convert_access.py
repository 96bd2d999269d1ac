"""Attributes and items in converted code: read through the write log, written into it."""

from __future__ import annotations

import functools
import operator
from collections import defaultdict, deque
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from dy2st.errors import NeedsPythonValue, StructureError
from dy2st.naming import is_plain_module
from dy2st.runtime.contents import Spliced
from dy2st.runtime.convert_if import switch
from dy2st.runtime.impure import refuse_outside
from dy2st.runtime.list_methods import LIST_METHODS, as_symbolic, joined_items, list_slice
from dy2st.runtime.log import MISSING
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.symbolic_range import list_item
from dy2st.runtime.tensor import Tensor, needs_value
from dy2st.runtime.undefined import Undefined
from dy2st.runtime.variant import SymbolicList, Variant


def attr(trace: Any, obj: Any, name: str) -> Any:
    """Return `obj.name`."""
    if isinstance(obj, Variant):
        return switch(trace, obj, lambda x: attr(trace, x, name))
    if isinstance(obj, (Tensor, Scalar)) or _is_plain(obj, name):
        return getattr(obj, name)
    if name == "__dict__":
        return _attributes(trace, obj)
    found = trace.log.get(("attr", id(obj), name))
    if found is MISSING:
        made = getattr(type(obj), name, None)
        if isinstance(made, property) and made.fget is not None and not isinstance(obj, type):
            return trace.callable(made.fget)(obj)
        if id(obj) in trace.made_objects or trace.came_with(obj, name):
            return getattr(obj, name)
        if trace.classes_written and (found := _of_class(trace, obj, name)) is not MISSING:
            return checked_attribute(trace, found, obj, name)
        value = getattr(obj, name, MISSING)
        if value is MISSING:
            trace.note_attribute(obj, name, MISSING)
            return getattr(obj, name)  # Python words the error
        return trace.note_attribute(obj, name, value)
    return checked_attribute(trace, found, obj, name)


def _is_plain(x: Any, name: str) -> bool:
    """Say whether an attribute is the object's own affair: of built-in types, arrays, libraries, or a dunder name of a
    class or function.
    """
    if isinstance(x, ModuleType):
        return is_plain_module(x.__name__)
    if isinstance(x, (type, FunctionType)):
        return is_plain_module(x.__module__) or (name.startswith("__") and name.endswith("__"))
    return type(x).__module__ in ("builtins", "numpy")


def _attributes(trace: Any, obj: Any) -> dict[str, Any]:
    """Return `obj.__dict__`; where the trace wrote attributes, a dict of them all as they stand."""
    if id(obj) in trace.constructing:
        vars(obj).update(trace.log.take_attributes(obj))
    found = trace.attributes_of(obj)
    real = vars(obj)
    return real if len(found) == len(real) and all(found.get(k, MISSING) is x for k, x in real.items()) else found


def _of_class(trace: Any, obj: Any, name: str) -> Any:
    """Return what the trace wrote to the class that `obj` has an attribute from; MISSING where it did not."""
    for owner in (*(() if isinstance(obj, type) else (obj,)), *(obj if isinstance(obj, type) else type(obj)).__mro__):
        found = trace.log.get(("attr", id(owner), name))
        if found is not MISSING or name in getattr(owner, "__dict__", ()):
            return found
    return MISSING


def symbolic_key(key: Scalar, container: Any) -> NeedsPythonValue:
    """Return the error for a key that only the run will tell."""
    return needs_value(
        f"a symbolic {key.kind} was used as a key of a {type(container).__name__}",
        "use a list or a tensor, which take such an index; the keys of a dict are known while tracing",
    )


def checked_attribute(trace: Any, found: Any, obj: Any, name: str) -> Any:
    """Return an attribute that the trace wrote; AttributeError where it was deleted or only another path wrote it."""
    if isinstance(found, Undefined):
        raise AttributeError(f"'{type(obj).__name__}' object has no attribute '{name}'")
    return found


def set_attr(trace: Any, obj: Any, name: str, value: Any) -> None:
    """Do `obj.name = value`."""
    if isinstance(obj, Variant):
        switch(trace, obj, lambda x: set_attr(trace, x, name, value))
        return
    if isinstance(obj, Tensor):
        if name == "grad":
            trace.write_grad(obj, value)
            return
        if name == "stop_gradient":
            trace.set_stop_gradient(obj, value)
            return
        setattr(obj, name, value)
        return
    if isinstance(getattr(type(obj), name, None), property):
        trace.callable(getattr(type(obj), name).fset)(obj, value)
        return
    trace.classes_written = trace.classes_written or isinstance(obj, type)
    trace.log.set(("attr", id(obj), name), obj, value)
    if id(obj) in trace.made_objects:
        trace.show_attribute(("attr", id(obj), name), value)


def del_attr(trace: Any, obj: Any, name: str) -> None:
    """Do `del obj.name`."""
    if attr(trace, obj, name) is not MISSING:
        trace.log.set(("attr", id(obj), name), obj, Undefined(name))


def item(trace: Any, obj: Any, key: Any) -> Any:
    """Return `obj[key]`."""
    if isinstance(obj, Variant):
        return switch(trace, obj, lambda x: item(trace, x, key))
    if isinstance(key, Variant):
        return switch(trace, key, lambda k: item(trace, obj, k))
    content = trace.content(obj)
    if isinstance(content, Variant):
        return trace.on_content(obj, switch, lambda: item(trace, obj, key))
    if isinstance(content, Tensor):
        return content[_plain_key(trace, key)]
    if isinstance(content, SymbolicList):
        if isinstance(key, slice):
            made: list[Any] = []
            trace.store(made, list_slice(trace, content, key))
            return made
        return list_item(trace, content, key)
    if (own := users_method(trace, content, "__getitem__")) is not None:
        return own(key)
    key = trace.item(key) if isinstance(key, Tensor) else key
    if isinstance(key, Scalar):
        if isinstance(content, (list, tuple)):
            return list_item(trace, as_symbolic(trace, list(content)), key)
        raise symbolic_key(key, content)
    if isinstance(obj, dict) and hasattr(obj, "__missing__") and key not in content:
        return _missing(trace, obj, key)
    return content[key]


def _missing(trace: Any, obj: Any, key: Any) -> Any:
    """Return what a dict that makes its items itself gives for a key that it lacks."""
    if not isinstance(obj, defaultdict) or obj.default_factory is None:
        return trace.callable(type(obj).__missing__)(obj, key)
    made = trace.callable(obj.default_factory)()
    set_item(trace, obj, key, made)
    return made


def _plain_key(trace: Any, key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_plain_key(trace, k) for k in key)
    if not isinstance(key, list):
        return key
    content = trace.content(key)
    return content if isinstance(content, SymbolicList) else list(content)


def slice_(trace: Any, start: Any, stop: Any, step: Any) -> slice:
    """Return `slice(start, stop, step)`; a tensor among the bounds is read as a number."""
    return slice(*(trace.item(x) if isinstance(x, Tensor) else x for x in (start, stop, step)))


def set_item(trace: Any, obj: Any, key: Any, value: Any) -> None:
    """Do `obj[key] = value`."""
    if isinstance(obj, Variant):
        switch(trace, obj, lambda x: set_item(trace, x, key, value))
        return
    if isinstance(obj, Tensor):
        if isinstance(value, Variant):
            switch(trace, value, lambda x: set_item(trace, obj, key, x))
            return
        obj[_plain_key(trace, key)] = value
        return
    if not isinstance(obj, (list, dict, deque)):
        own = users_method(trace, obj, "__setitem__")
        if own is None:
            refuse_outside(trace, obj)
        operator.setitem(obj, key, value) if own is None else own(key, value)
        return
    key = trace.item(key) if isinstance(key, Tensor) else key
    content = trace.writable(obj)
    if isinstance(content, Variant):
        trace.on_content(obj, switch, lambda: set_item(trace, obj, key, value))
        return
    if isinstance(content, list) and isinstance(key, Scalar):
        content = as_symbolic(trace, content, value)
    if isinstance(content, SymbolicList):
        trace.store(obj, LIST_METHODS["__setitem__"](trace, content, key, value)[0])
        return
    if isinstance(key, Scalar):
        raise symbolic_key(key, obj)
    content[key] = value
    trace.store(obj, content)


def users_method(trace: Any, obj: Any, name: str) -> Callable[..., Any] | None:
    """Return a special method that a class defines in Python, to be called converted; None for any other object."""
    if isinstance(obj, Variant):  # its class is none of the user's
        return None
    found = getattr(type(obj), name, None)
    return functools.partial(trace.callable(found), obj) if isinstance(found, FunctionType) else None


def del_item(trace: Any, obj: Any, key: Any) -> None:
    """Do `del obj[key]`."""
    if not isinstance(obj, (list, dict, deque)):
        own = users_method(trace, obj, "__delitem__")
        if own is None:
            refuse_outside(trace, obj)
        operator.delitem(obj, key) if own is None else own(key)
        return
    content = trace.writable(obj)
    if isinstance(content, Variant):
        trace.on_content(obj, switch, lambda: del_item(trace, obj, key))
        return
    if isinstance(content, SymbolicList):
        trace.store(obj, LIST_METHODS["pop"](trace, content, key)[0])
        return
    del content[key]
    trace.store(obj, content)


ITEM_METHODS: dict[str, Callable[..., Any]] = {"__getitem__": item, "__setitem__": set_item, "__delitem__": del_item}
MUTATING = {
    list: {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"},
    dict: {"pop", "popitem", "clear", "update", "setdefault", "move_to_end", "subtract"},
    set: {
        "add",
        "discard",
        "remove",
        "pop",
        "clear",
        "update",
        "intersection_update",
        "difference_update",
        "symmetric_difference_update",
    },
    deque: {
        "append",
        "appendleft",
        "pop",
        "popleft",
        "extend",
        "extendleft",
        "clear",
        "rotate",
        "insert",
        "remove",
        "reverse",
    },
}


def method(trace: Any, obj: Any, name: str) -> Callable[..., Any]:
    """Return the callable for `obj.name(...)`."""
    if isinstance(obj, Variant):
        return lambda *a, **k: switch(trace, obj, lambda x: method(trace, x, name)(*a, **k))
    kind = next((k for k in MUTATING if type(obj) is k or isinstance(obj, k)), None)
    if kind is None:
        return trace.callable(attr(trace, obj, name))
    return functools.partial(_container_method, trace, obj, name, kind)


def _container_method(trace: Any, obj: Any, name: str, kind: type, *args: Any, **keywords: Any) -> Any:
    if name in ITEM_METHODS:
        return ITEM_METHODS[name](trace, obj, *args)
    outside = id(obj) in trace.external and trace.log.get(("items", id(obj))) is MISSING
    if outside and name in ("append", "extend") and kind is list:
        return _append_outside(trace, obj, name, args)
    if isinstance(trace.content(obj), Variant):
        return trace.on_content(obj, switch, lambda: _container_method(trace, obj, name, kind, *args, **keywords))
    if name not in MUTATING[kind]:
        content = trace.content(obj)
        if isinstance(content, SymbolicList):
            raise needs_value(f"list.{name}() of a list whose length only the run will tell")
        found = getattr(content, name)(*args, **keywords)
        return list(found) if kind is dict and name in ("keys", "values", "items") else found
    if name == "extend" and kind is list and isinstance(trace.content(args[0]), SymbolicList):
        extend(trace, obj, args[0])
        return None
    content = trace.writable(obj)
    if isinstance(content, list) and any(isinstance(a, Scalar) for a in args[:1]) and name in ("pop", "insert"):
        content = as_symbolic(trace, content)
    if isinstance(content, SymbolicList):
        if name not in LIST_METHODS:
            raise StructureError(f"list.{name}() of a list whose length only the run will tell is not converted")
        changed, result = LIST_METHODS[name](trace, content, *args)
        trace.store(obj, changed)
        return result
    result = getattr(content, name)(*(trace.content(a) for a in args) if name in ("extend", "update") else args,
                                    **keywords)  # fmt: skip
    trace.store(obj, content)
    return result


def extend(trace: Any, target: Any, more: Any) -> None:
    """Do `target += more` on a list, where one of them is as long as only the run will tell."""
    content = trace.writable(target)
    if not isinstance(content, SymbolicList):
        content = joined_items(trace, [*content, Spliced(trace.content(more))])
    else:
        content = LIST_METHODS["extend"](trace, content, more)[0]
    trace.store(target, content)


def _append_outside(trace: Any, obj: Any, name: str, args: Any) -> None:
    """Append to a list from outside without reading it: its tail is what each run adds."""
    key = ("tail", id(obj))
    tail = trace.log.get(key)
    tail = [] if tail is MISSING else tail
    items = trace.iterate(args[0]) if name == "extend" else [args[0]]
    if isinstance(tail, SymbolicList):
        for x in items:
            tail, _ = LIST_METHODS["append"](trace, tail, x)
        trace.log.set(key, obj, tail)
    else:
        trace.log.set(key, obj, [*tail, *items])
