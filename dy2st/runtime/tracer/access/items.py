"""Items in converted code: read through the side-effect log, written into it."""

from __future__ import annotations

import functools
import operator
from collections import defaultdict, deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.kinds import derives, is_dict, is_list, is_sequence, is_slice, is_tuple, type_of
from dy2st.runtime.eager.side_effect_check import refuse_outside
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.operators import users_dunder
from dy2st.runtime.tracer.access.symbolic_keys import at_position, is_open, lacks, with_key
from dy2st.runtime.tracer.access.symbolic_list import as_symbolic, list_slice
from dy2st.runtime.tracer.access.symbolic_list_writes import change
from dy2st.runtime.tracer.control_flow.conditional import switch
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.container_classes import own_method, plain_content
from dy2st.runtime.tracer.values.dict_views import is_view
from dy2st.runtime.tracer.values.symbolic_iterable import list_item
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def item(trace: Trace, obj: Any, key: Any) -> Any:
    """Return `obj[key]`."""
    if isinstance(obj, Variant):
        return switch(trace, obj, lambda x: item(trace, x, key))
    if isinstance(obj, CONTAINERS) and (own := own_method(obj, "__getitem__")) is not None:
        return trace.callable(own)(obj, key)
    return item_of_kind(trace, obj, key)


def item_of_kind(trace: Trace, obj: Any, key: Any) -> Any:
    """Return `obj[key]` as the library's class has it that the class of a container derives from."""
    if isinstance(key, Variant):
        return switch(trace, key, lambda k: item_of_kind(trace, obj, k))
    content = obj if is_view(obj) else trace.content(obj)  # no view has items by place
    if isinstance(content, Variant):
        return trace.on_content(obj, switch, lambda: item_of_kind(trace, obj, key))
    if isinstance(content, Tensor):
        return content[_plain_key(trace, key)]
    if isinstance(content, SymbolicList):
        if is_slice(key):
            made: list[Any] = []
            trace.store(made, list_slice(trace, content, key))
            if content.element.holds_objects:
                trace.borrows.share(obj, made)
            return made
        return list_item(trace, content, key, None if content is obj else obj)
    if (own := users_method(trace, content, "__getitem__")) is not None and not isinstance(obj, CONTAINERS):
        return own(key)
    content = plain_content(content) if isinstance(obj, CONTAINERS) else content
    key = trace.item(key) if isinstance(key, Tensor) else key
    if type(content) in (list, tuple, str, range) and (own := users_dunder(type_of(key), "__index__")) is not None:
        key = trace.callable(own)(key)
    if isinstance(key, Scalar) and is_sequence(content):
        if any(map(trace.borrows.has_parts, content)):
            return at_position(trace, key, content)
        return list_item(trace, as_symbolic(trace, list(content)), key)
    if is_open(key) and is_dict(content):
        otherwise = lacks(key) if not hasattr(type_of(obj), "__missing__") else None
        found = with_key(trace, key, content, lambda k: item_of_kind(trace, obj, k), otherwise)
        trace.found_keys.note(trace.builder, obj, key)
        return found
    if is_dict(obj) and hasattr(type(obj), "__missing__") and key not in content:
        return _missing(trace, obj, key)
    return content[key] if type(content) in _BUILT_IN else natively(trace, operator.getitem, content, key)


_BUILT_IN = frozenset((list, tuple, dict, str, bytes, range, deque))


def _missing(trace: Trace, obj: Any, key: Any) -> Any:
    """Return what a dict that makes its items itself gives for a key that it lacks."""
    if not derives(type_of(obj), defaultdict) or obj.default_factory is None:
        return trace.callable(type_of(obj).__missing__)(obj, key)
    made = trace.callable(obj.default_factory)()
    set_item(trace, obj, key, made)
    return made


def _plain_key(trace: Trace, key: Any) -> Any:
    if is_tuple(key):
        return tuple(_plain_key(trace, k) for k in key)
    if not is_list(key):
        return key
    content = trace.content(key)
    return content if isinstance(content, SymbolicList) else list(content)


def slice_(trace: Trace, start: Any, stop: Any, step: Any) -> slice:
    """Return `slice(start, stop, step)`; a tensor among the bounds is read as a number."""
    return slice(*(trace.item(x) if isinstance(x, Tensor) else x for x in (start, stop, step)))


def set_item(trace: Trace, obj: Any, key: Any, value: Any) -> None:
    """Do `obj[key] = value`."""
    if isinstance(obj, Variant):
        switch(trace, obj, lambda x: set_item(trace, x, key, value))
        return
    if isinstance(obj, CONTAINERS) and (own := own_method(obj, "__setitem__")) is not None:
        trace.callable(own)(obj, key, value)
        return
    set_item_of_kind(trace, obj, key, value)


def set_item_of_kind(trace: Trace, obj: Any, key: Any, value: Any) -> None:
    """Do `obj[key] = value` as the library's class has it that the class of a container derives from."""
    if isinstance(key, Variant):
        switch(trace, key, lambda k: set_item_of_kind(trace, obj, k, value))
        return
    if isinstance(obj, Tensor):
        if isinstance(value, Variant):
            switch(trace, value, lambda x: set_item_of_kind(trace, obj, key, x))
            return
        obj[_plain_key(trace, key)] = value
        return
    if not isinstance(obj, (list, dict, deque)):
        own = users_method(trace, obj, "__setitem__")
        if own is None:
            refuse_outside(trace.external, obj)
        natively(trace, operator.setitem, obj, key, value) if own is None else own(key, value)
        return
    key = trace.item(key) if isinstance(key, Tensor) else key
    content = trace.writable(obj)
    if isinstance(content, Variant):
        trace.on_content(obj, switch, lambda: set_item_of_kind(trace, obj, key, value))
        return
    if is_list(content) and isinstance(key, Scalar):
        content = as_symbolic(trace, content, value)
    if isinstance(content, SymbolicList):
        change(trace, obj, content, "__setitem__", key, value)
        return
    if is_open(key) and is_dict(content):
        known = trace.found_keys.has(trace.builder, obj, key)
        with_key(trace, key, content, lambda k: set_item_of_kind(trace, obj, k, value), lacks(key) if known else None)
        return
    content[key] = value
    trace.store(obj, content)


def users_method(trace: Trace, obj: Any, name: str) -> Callable[..., Any] | None:
    """Return a special method that a class defines in Python, to be called converted; None for any other object."""
    if isinstance(obj, Variant):  # its class is none of the user's
        return None
    found = getattr(type_of(obj), name, None)
    return functools.partial(trace.callable(found), obj) if isinstance(found, FunctionType) else None


def del_item(trace: Trace, obj: Any, key: Any) -> None:
    """Do `del obj[key]`."""
    if isinstance(obj, CONTAINERS) and (own := own_method(obj, "__delitem__")) is not None:
        trace.callable(own)(obj, key)
        return
    del_item_of_kind(trace, obj, key)


def del_item_of_kind(trace: Trace, obj: Any, key: Any) -> None:
    """Do `del obj[key]` as the library's class has it that the class of a container derives from."""
    if isinstance(key, Variant):
        switch(trace, key, lambda k: del_item_of_kind(trace, obj, k))
        return
    if not isinstance(obj, (list, dict, deque)):
        own = users_method(trace, obj, "__delitem__")
        if own is None:
            refuse_outside(trace.external, obj)
        natively(trace, operator.delitem, obj, key) if own is None else own(key)
        return
    content = trace.writable(obj)
    if isinstance(content, Variant):
        trace.on_content(obj, switch, lambda: del_item_of_kind(trace, obj, key))
        return
    if isinstance(content, SymbolicList):
        change(trace, obj, content, "pop", key)
        return
    if is_open(key) and is_dict(content):
        with_key(trace, key, content, lambda k: del_item_of_kind(trace, obj, k), lacks(key))
        return
    trace.found_keys.forget(obj)
    del content[key]
    trace.store(obj, content)
