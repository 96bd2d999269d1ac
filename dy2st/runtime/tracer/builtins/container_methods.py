"""Methods of lists, dicts, sets and deques in converted code: their content is read and written in the log."""

from __future__ import annotations

import builtins
import functools
import operator
import types
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from dy2st.errors import StructureError
from dy2st.kinds import DICT, LIST, SET, derives, is_deque, is_dict, is_list, is_sequence, type_of
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.access.attributes import attr
from dy2st.runtime.tracer.access.boolean_ops import compare_one, meets_symbols
from dy2st.runtime.tracer.access.items import del_item_of_kind, item_of_kind, set_item_of_kind
from dy2st.runtime.tracer.access.symbolic_keys import is_open, lacks, with_key
from dy2st.runtime.tracer.access.symbolic_list import LIST_METHODS, as_symbolic, joined_items
from dy2st.runtime.tracer.access.symbolic_list_writes import change
from dy2st.runtime.tracer.control_flow.conditional import if_exp, switch
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, Spliced, refuse_spliced
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import PushIterator
from dy2st.runtime.tracer.values.container_classes import (
    OF_C,
    copied,
    has_method,
    is_of_users_class,
    library_kind,
    own_method,
    plain_content,
    put_part,
    settings,
)
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import fstring
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def init_of_kind(trace: Trace, x: Any, *args: Any, **keywords: Any) -> None:
    """Do what the library's class of a container does in `__init__`: let it hold what is made of the arguments."""
    made = trace.callable(library_kind(type_of(x)))(*args, **keywords)
    for name, value in settings(made).items():
        put_part(x, name, value)
    content = trace.content(made)
    if is_dict(x):
        content = trace.writable(x)
        content.update(trace.content(made))
    trace.store(x, content)


def _of_kind(name: str) -> Callable[..., Any]:
    """Return what does, with a container, what a special method of the library's class does."""

    def use(trace: Trace, x: Any, *args: Any) -> Any:
        if not is_of_users_class(x):
            return trace.callable(getattr(operator, name, None) or getattr(builtins, name))(x, *args)
        made: Any = library_kind(type_of(x))()
        content = trace.content(x)
        trace.store(made, content)
        if isinstance(content, SymbolicList) and content.element.holds_objects:
            trace.borrows.share(x, made)
        return use(trace, made, *args)

    return use


ITEM_METHODS: dict[str, Callable[..., Any]] = {
    "__getitem__": item_of_kind,
    "__setitem__": set_item_of_kind,
    "__delitem__": del_item_of_kind,
    "__init__": init_of_kind,
    "__len__": _of_kind("len"),
    "__iter__": _of_kind("iter"),
    "__contains__": _of_kind("contains"),
}
MUTATING: dict[type[Any], set[str]] = {
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


def method(trace: Trace, obj: Any, name: str) -> Callable[..., Any]:
    """Return the callable for `obj.name(...)`."""
    if isinstance(obj, Variant):
        return lambda *a, **k: switch(trace, obj, lambda x: method(trace, x, name)(*a, **k))
    kind = next((k for k in MUTATING if type(obj) is k or isinstance(obj, k)), None)
    if kind is None:
        return trace.callable(attr(trace, obj, name))
    if (own := own_method(obj, name)) is not None:
        return functools.partial(trace.callable(own), obj)
    if is_of_users_class(obj) and not has_method(library_kind(type_of(obj)), name):
        return trace.callable(attr(trace, obj, name))
    return functools.partial(_container_method, trace, obj, name, kind)


_HASHED: tuple[type, ...] = (set, dict)
_OF_ONE_ITEM = ("add", "discard", "remove")
_VIEWS = ("keys", "values", "items")
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)


def bound_method(trace: Trace, f: Any) -> Callable[..., Any] | None:
    """Return what to call for a method of a container that is kept in a variable; None for anything else."""
    if isinstance(f, _BOUND) and isinstance(f.__self__, CONTAINERS) and _is_converted(f.__self__, f.__name__):
        kind = next(k for k in MUTATING if isinstance(f.__self__, k))
        return functools.partial(_container_method, trace, f.__self__, f.__name__, kind)
    if isinstance(f, OF_C) and issubclass(
        f.__objclass__, CONTAINERS
    ):  # `list.append`, also in a class that inherits it

        def call(obj: Any, *args: Any, **keywords: Any) -> Any:
            if isinstance(obj, f.__objclass__) and _is_converted(obj, f.__name__):
                kind = next(k for k in MUTATING if isinstance(obj, k))
                return _container_method(trace, obj, f.__name__, kind, *args, **keywords)
            return natively(trace, f, obj, *args, **keywords)

        return call
    return None


def _is_converted(x: Any, name: str) -> bool:
    return not name.startswith("__") or (name in ITEM_METHODS and (name != "__init__" or is_of_users_class(x)))


def _container_method(trace: Trace, obj: Any, name: str, kind: type, *args: Any, **keywords: Any) -> Any:
    refuse_spliced(args)
    if name in ITEM_METHODS:
        return ITEM_METHODS[name](trace, obj, *args, **keywords)
    outside = id(obj) in trace.external and trace.log.get(("items", id(obj))) is MISSING
    if outside and name in ("append", "extend") and kind is list:
        return _append_outside(trace, obj, name, args)
    if outside and name == "clear" and trace.builder.parent is None:  # always, and what was there is not read
        emptied = copied(obj)
        emptied.clear()
        trace.found_keys.forget(obj)
        trace.store(obj, emptied)
        return None
    if isinstance(trace.content(obj), Variant):
        if kind is dict and name in _VIEWS:
            return trace.on_content(obj, switch, lambda: list(getattr(plain_content(trace.content(obj)), name)()))
        return trace.on_content(obj, switch, lambda: _container_method(trace, obj, name, kind, *args, **keywords))
    if kind is set and name not in _OF_ONE_ITEM:
        open_ones = (x for x in args if isinstance(x, _HASHED) and not isinstance(trace.content(x), CONTAINERS))
        if (several := next(open_ones, None)) is not None:
            return trace.on_content(several, switch, lambda: _container_method(trace, obj, name, kind, *args))
        args = tuple(map(trace.content, args))
    if kind in (dict, set) and args and is_open(args[0]) and name in _KEYED:
        again = functools.partial(_container_method, trace, obj, name, kind)
        return _with_open_key(trace, obj, name, again, *args)
    if args and isinstance(args[0], PushIterator) and name in ("extend", "update"):
        args = (trace.callable(list)(args[0]), *args[1:])
    if _is_searched(trace, trace.content(obj), name, args):
        return _search(trace, obj, trace.content(obj), name, *args)
    if name == "sort":
        trace.changes[id(obj)] += 1
        trace.store(obj, trace.content(trace.callable(sorted)(obj, *args, **keywords)))
        return None
    if name == "copy" and is_of_users_class(obj) and type_of(obj).copy not in (LIST.copy, DICT.copy, SET.copy):
        return _copy_of_users_class(trace, obj)
    if name not in MUTATING[kind]:
        content = plain_content(trace.content(obj)) if hasattr(kind, name) else trace.content(obj)
        if isinstance(content, SymbolicList) and name == "copy":
            return item_of_kind(trace, obj, slice(None))
        if isinstance(content, SymbolicList):
            raise needs_value(f"list.{name}() of a list whose length only the run will tell")
        if kind is dict and name in _VIEWS and not args and not keywords:
            return _view(trace, obj, name, content)
        return _compared(trace, content, name, *args, **keywords)
    if name == "extend" and kind is list and isinstance(trace.content(args[0]), SymbolicList):
        extend(trace, obj, args[0])
        return None
    content = trace.writable(obj)
    if is_list(content) and any(isinstance(a, Scalar) for a in args[:1]) and name in ("pop", "insert"):
        content = as_symbolic(trace, content)
    if isinstance(content, SymbolicList):
        if name not in LIST_METHODS:
            raise StructureError(f"list.{name}() of a list whose length only the run will tell is not converted")
        return change(trace, obj, content, name, *args)
    if name in ("pop", "popitem", "clear", "remove", "discard"):
        trace.found_keys.forget(obj)
    given = tuple(map(trace.content, args)) if name in ("extend", "update") else args
    result = _compared(trace, content, name, *given, **keywords)
    trace.store(obj, content)
    return result


def _view(trace: Trace, obj: Any, name: str, content: Any) -> Any:
    """Return what `keys`, `values` or `items` of a dict gives; of what `vars` gave, a copy."""
    if id(obj) in trace.attribute_dicts:
        return list(getattr(content, name)())
    return trace.mirrors.view(obj, content, name, trace.is_from_outside(obj))


def _is_searched(trace: Trace, content: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Return whether a list is searched for what only the run compares."""
    if name not in ("index", "count", "remove") or len(args) != 1 or not is_sequence(content):
        return False
    return any(meets_symbols(trace, x) for x in (*args, *content))


def _search(trace: Trace, obj: Any, content: Any, name: str, wanted: Any) -> Any:
    """Return what `index`, `count` or `remove` of a list gives, item by item."""

    def after(place: int) -> Any:
        if place == len(content):
            raise _missing(trace, type_of(content), name, wanted)
        same = content[place] is wanted or compare_one(trace, content[place], "==", wanted)
        if trace.is_symbolic(same):
            return if_exp(trace, same, lambda: found(place), lambda: after(place + 1))
        return found(place) if same else after(place + 1)

    def found(place: int) -> Any:
        if name == "index":
            return place
        trace.store(obj, [*content[:place], *content[place + 1 :]])
        return None

    def one(item: Any) -> Any:
        same = item is wanted or compare_one(trace, item, "==", wanted)
        return if_exp(trace, same, lambda: 1, lambda: 0) if trace.is_symbolic(same) else int(bool(same))

    return sum(map(one, content)) if name == "count" else after(0)


def _missing(trace: Trace, kind: type, name: str, wanted: Any) -> ValueError:
    """Return what Python raises where a list or tuple has no such item."""
    asked = object()
    try:
        getattr(kind(), name)(asked)
    except ValueError as error:
        before, named, behind = str(error).partition(repr(asked))
        return ValueError(fstring(trace, before, (wanted, "r", None), behind) if named else str(error))
    raise AssertionError


def _copy_of_users_class(trace: Trace, obj: Any) -> Any:
    """Return a copy as the library's classes make it that call the class of what they copy."""
    content = plain_content(trace.content(obj))
    before = (obj.default_factory,) if derives(type_of(obj), defaultdict) else ()
    after = (obj.maxlen,) if is_deque(obj) and obj.maxlen is not None else ()
    return trace.callable(type_of(obj))(*before, content, *after)


def _compared(trace: Trace, content: Any, name: str, *args: Any, **keywords: Any) -> Any:
    """Do something with the content of a container; what compares its items sees what the trace wrote to them."""
    own = getattr(content, name)
    if name in ("index", "count", "remove") and any(map(is_plain_object, (*content, *args))):
        return natively(trace, own, *args, **keywords)
    return own(*args, **keywords)


_KEYED = ("get", "pop", "setdefault", "add", "discard", "remove", "move_to_end")
"""Methods of dicts and sets whose first argument is a key."""


def _with_open_key(trace: Trace, obj: Any, name: str, again: Callable[..., Any], key: Any, *more: Any) -> Any:
    """Return what a method gives for a key known only at run time."""
    otherwise: Callable[[], Any] | None = lacks(key)
    if name in ("get", "discard") or (name == "pop" and more):
        otherwise = lambda: more[0] if more else None  # noqa: E731 (one of three)
    elif name in ("setdefault", "add"):
        otherwise = None
    return with_key(trace, key, trace.content(obj), lambda k: again(k, *more), otherwise)


def extend(trace: Trace, target: Any, more: Any) -> None:
    """Do `target += more` on a list, where one of them is as long as only the run will tell."""
    content = trace.writable(target)
    if isinstance(content, SymbolicList):
        change(trace, target, content, "extend", more)
        return
    made = joined_items(trace, [*content, Spliced(trace.content(more))])
    trace.store(target, made)
    if made.element.holds_objects:
        trace.borrows.share(target, more)


def _append_outside(trace: Trace, obj: Any, name: str, args: Any) -> None:
    """Append to a list from outside without reading it: its tail is what each run adds."""
    key = ("tail", id(obj))
    found = trace.log.get(key)
    tail: Any = [] if found is MISSING else found
    items = trace.iterate(args[0]) if name == "extend" else [args[0]]
    if isinstance(tail, SymbolicList):
        for x in items:
            tail, _ = LIST_METHODS["append"](trace, tail, x)
        trace.log.set(key, obj, tail)
    else:
        trace.log.set(key, obj, [*tail, *items])
