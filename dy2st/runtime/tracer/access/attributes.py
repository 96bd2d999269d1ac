"""Attributes in converted code: read through the side-effect log, written into it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from dy2st.kinds import type_of, variables_of
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.access.absent_attributes import (
    class_attribute,
    computed_attribute,
    is_present,
    lacking,
    may_be_absent,
    of_class,
    present,
    real_attribute,
    users_function,
    users_getattr,
)
from dy2st.runtime.tracer.access.items import del_item_of_kind, item_of_kind, set_item_of_kind
from dy2st.runtime.tracer.control_flow.conditional import if_exp, switch
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.recording.requires_grad_check import refuse_unsettled
from dy2st.runtime.tracer.values.container_classes import has_items_as_attributes, put_part
from dy2st.runtime.tracer.values.object_attributes import attributes
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import Variant


def attr(trace: Trace, obj: Any, name: str, *default: Any) -> Any:
    """Return `obj.name`; `default` where there is none."""
    if isinstance(obj, Variant):
        return switch(trace, obj, lambda x: attr(trace, x, name, *default))
    if isinstance(obj, (Tensor, Scalar)) or _is_plain(obj, name):
        if name == "stop_gradient" and trace.mixed:
            refuse_unsettled(trace, obj)
        if name == "__class__" and isinstance(obj, Scalar):
            return obj.python_type
        found = getattr(obj, name, *default)
        if isinstance(obj, (Tensor, ModuleType)):
            trace.note_library(obj if isinstance(obj, ModuleType) else type(obj), name)
        return found
    if id(obj) in trace.borrows.parts:
        trace.borrows.read(obj)
    if has_items_as_attributes(obj) and name in trace.content(obj):
        return item_of_kind(trace, obj, name)
    if name == "__dict__":
        return obj if has_items_as_attributes(obj) else _attributes(trace, obj)

    found = trace.log.get(("attr", id(obj), name))

    def absent() -> Any:
        if found is MISSING and users_getattr(type_of(obj)) is None:
            return getattr(obj, name, *default)  # Python words the error
        if trace.classes_written and (written := _of_class(trace, type(obj), name)) is not MISSING:
            return present(trace, written, lambda: lacking(obj, name))
        try:
            return of_class(trace, obj, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    if found is not MISSING:
        return present(trace, found, absent)
    if (computed := computed_attribute(obj, name)) is not None:
        trace.note_behaviour(obj)
        try:
            return computed(trace, obj)
        except AttributeError:
            if (own := users_getattr(type_of(obj))) is not None:
                return trace.callable(own)(obj, name)
            if not default:
                raise
            return default[0]
    if id(obj) in trace.made.objects or trace.came_with(obj, name):
        value = _of_made(trace, obj, name)
        if may_be_absent(value):
            return present(trace, value, absent)
        return absent() if value is MISSING else value
    if trace.classes_written and (written := _of_class(trace, obj, name)) is not MISSING:
        return present(trace, written, absent)
    value = trace.note_attribute(obj, name, real_attribute(obj, name))
    return absent() if value is MISSING else value


def has_attr(trace: Trace, obj: Any, name: str) -> Any:
    """Return `hasattr(obj, name)`, symbolic where it is known only at run time."""
    if isinstance(obj, Variant):
        return switch(trace, obj, lambda x: has_attr(trace, x, name))
    found = trace.log.get(("attr", id(obj), name))
    if found is MISSING:
        return attr(trace, obj, name, MISSING) is not MISSING

    def absent() -> bool:
        try:
            return of_class(trace, obj, name) is not MISSING
        except AttributeError:
            return False

    there = is_present(trace, found)
    return if_exp(trace, there, lambda: True, absent) if trace.is_symbolic(there) else there or absent()


def _is_plain(x: Any, name: str) -> bool:
    """Return whether an attribute is the object's own affair: of built-in types, arrays, libraries, or a dunder name of
    a class or function.
    """
    if isinstance(x, ModuleType):
        return is_plain_module(x.__name__)
    if isinstance(x, (type, FunctionType)):
        return is_plain_module(x.__module__) or (name.startswith("__") and name.endswith("__"))
    return type(x).__module__ in ("builtins", "numpy")


def _attributes(trace: Trace, obj: Any) -> dict[str, Any]:
    """Return a dict that stands for `obj.__dict__`: what is read from it and written to it are attributes."""
    if id(obj) in trace.made.constructing:
        variables_of(obj).update(trace.log.take_attributes(obj))
        return variables_of(obj)
    made = dict(trace.attributes_of(obj))
    if (name := next((name for name, x in made.items() if may_be_absent(x)), None)) is not None:
        raise needs_value(f"only the run will tell whether a {type(obj).__name__} has .{name}, and all of it is read")
    trace.attribute_dicts[id(made)] = made, obj
    return made


def _of_made(trace: Trace, obj: Any, name: str) -> Any:
    """Return an attribute of an object that the trace made, or that stands for an argument; not so its class.

    MISSING where there is none.
    """
    if name in getattr(obj, "__dict__", ()):
        return real_attribute(obj, name)
    if trace.classes_written and (found := _of_class(trace, obj, name)) is not MISSING:
        return found
    owner = next((kind for kind in type(obj).__mro__ if name in vars(kind)), None)
    if owner is None or hasattr(type_of(vars(owner)[name]), "__get__") or is_plain_module(owner.__module__):
        return real_attribute(obj, name)  # slots, methods and what else makes something of the object
    return trace.note_attribute(type(obj), name, vars(owner)[name])


def _of_class(trace: Trace, obj: Any, name: str) -> Any:
    """Return what the trace wrote to the class that `obj` has an attribute from; MISSING where it did not."""
    for owner in (*(() if isinstance(obj, type) else (obj,)), *(obj if isinstance(obj, type) else type(obj)).__mro__):
        found = trace.log.get(("attr", id(owner), name))
        if found is not MISSING or name in getattr(owner, "__dict__", ()):
            return found
    return MISSING


def set_attr(trace: Trace, obj: Any, name: str, value: Any) -> None:
    """Do `obj.name = value`."""
    if isinstance(obj, Variant):
        set_one = functools.partial(set_attr, trace)
        switch(trace, obj, lambda x: (trace.log_attribute if _is_of_library(x) else set_one)(x, name, value))
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
    if (own := _users_setattr(obj)) is not None:
        trace.callable(own)(obj, name, value)
        return
    if _is_frozen(obj):
        setattr(obj, name, value)  # Python words the error
    set_as_object(trace, obj, name, value)


def set_as_object(trace: Trace, obj: Any, name: str, value: Any) -> None:
    """Do what `object.__setattr__` does, or what the descriptor of that name in the class does."""
    made = class_attribute(type_of(obj), name)
    if isinstance(made, property) and made.fset is not None:
        trace.callable(made.fset)(obj, value)
        return
    if (own := users_function(type_of(made), "__set__")) is not None:
        trace.callable(own)(made, obj, value)
        return
    if not hasattr(obj, "__dict__") and not hasattr(type_of(obj), name):
        object.__setattr__(obj, name, value)  # Python words the error
    set_plain_attr(trace, obj, name, value)


def set_plain_attr(trace: Trace, obj: Any, name: str, value: Any) -> None:
    """Do `object.__setattr__(obj, name, value)`."""
    if _is_of_library(obj):
        raise needs_value(f".{name} of {obj.__name__}, which is of a library, is set", "set it outside of the function")
    trace.classes_written = trace.classes_written or isinstance(obj, type)
    if has_items_as_attributes(obj):
        set_item_of_kind(trace, obj, name, value)
    elif name != "__dict__":
        trace.log_attribute(obj, name, value)
    elif value is obj and id(obj) in trace.made.constructing:
        put_part(obj, name, value)
    else:
        raise needs_value(f"the `__dict__` of a {type(obj).__name__} is replaced", "set its attributes one by one")


def _is_of_library(obj: Any) -> bool:
    """Return whether an object is a module or a class that is not the user's."""
    return isinstance(obj, (type, ModuleType)) and is_plain_module(getattr(obj, "__module__", obj.__name__))


def _users_setattr(obj: Any) -> Callable[..., Any] | None:
    """Return the `__setattr__` that the class of an object has from the user."""
    return None if _is_frozen(obj) else users_function(type_of(obj), "__setattr__")


def _is_frozen(obj: Any) -> bool:
    """Return whether an object is of a frozen dataclass."""
    made = getattr(type_of(obj), "__dataclass_params__", None)
    return made is not None and made.frozen


def del_attr(trace: Trace, obj: Any, name: str) -> None:
    """Do `del obj.name`."""
    if isinstance(obj, Variant):
        switch(trace, obj, lambda x: del_attr(trace, x, name))
        return
    if _is_frozen(obj):
        delattr(obj, name)  # Python words the error
    if isinstance(obj, (Tensor, Scalar)) or (own := users_function(type_of(obj), "__delattr__")) is None:
        del_plain_attr(trace, obj, name)
    else:
        trace.callable(own)(obj, name)


def del_plain_attr(trace: Trace, obj: Any, name: str) -> None:
    """Do `object.__delattr__(obj, name)`."""
    made = class_attribute(type_of(obj), name)
    if isinstance(made, property) and made.fdel is not None:
        trace.callable(made.fdel)(obj)
        return
    if (own := users_function(type_of(made), "__delete__")) is not None:
        trace.callable(own)(made, obj)
        return
    if has_items_as_attributes(obj):
        del_item_of_kind(trace, obj, name)
        return
    found = trace.log.get(("attr", id(obj), name))
    if found is MISSING:
        if name not in attributes(obj) and not isinstance(obj, type):
            delattr(obj, name)  # Python words the error
        attr(trace, obj, name)
    elif may_be_absent(found):
        present(trace, found, lambda: lacking(obj, name))
    trace.log_attribute(obj, name, UnboundLocal(name))
