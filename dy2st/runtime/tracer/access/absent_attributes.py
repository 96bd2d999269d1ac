"""Attributes that an object may lack: presence is a part of what the side-effect log knows of an attribute.

What the log has under ("attr", id, name) is a value, `UnboundLocal` (there is none), or a variant whose tag 0 says that
a run has come here without one. Where the instance has none, Python goes on to the class and to its `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, cast

from dy2st.kinds import type_of
from dy2st.naming import is_plain_module
from dy2st.runtime.tracer.control_flow.conditional import if_exp
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import Unset
from dy2st.runtime.tracer.values.container_classes import OF_C
from dy2st.runtime.tracer.values.flatten import alternative
from dy2st.runtime.tracer.values.object_attributes import attributes
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import Variant


def may_be_absent(found: Any) -> bool:
    """Return whether a run may come here without an attribute, of which the log has `found`."""
    if isinstance(found, Variant):
        return len(found.alternatives) == 2 or bool(getattr(found.alternatives[0], "name", ""))
    return isinstance(found, UnboundLocal)


def is_present(trace: Trace, found: Any) -> Any:
    """Return whether there is an attribute of which the log has `found`: a bool, symbolic where it is known only at run
    time.
    """
    if not may_be_absent(found):
        return True
    return not isinstance(found, UnboundLocal) and Scalar(trace.emit("variant_tag", [found.value])) != 0


def present(trace: Trace, found: Any, absent: Callable[[], Any]) -> Any:
    """Return an attribute of which the log has `found`, or what `absent` gives where a run comes here without one."""
    if isinstance(found, UnboundLocal):
        return absent()
    if not may_be_absent(found):
        return found
    there = found.alternatives[1:]
    known = Variant(found.value, (Unset(""), *there), found)
    only = len(there) == 1
    return if_exp(trace, is_present(trace, found), lambda: alternative(trace, known, 1) if only else known, absent)


def lacking(obj: Any, name: str) -> Any:
    """Raise the AttributeError of an attribute that is not there."""
    raise AttributeError(f"'{type(obj).__name__}' object has no attribute '{name}'")


def of_class(trace: Trace, obj: Any, name: str) -> Any:
    """Return what `obj.name` gives where the instance has no such attribute; AttributeError as Python words it."""
    if (computed := computed_attribute(obj, name, False)) is not None:
        return computed(trace, obj)
    found = class_attribute(type_of(obj), name)
    if found is not MISSING and not hasattr(type_of(found), "__objclass__"):  # the class describes a slot
        return found.__get__(obj, type(obj)) if hasattr(type_of(found), "__get__") else found
    if (own := users_getattr(type_of(obj))) is not None:
        return trace.callable(own)(obj, name)
    return lacking(obj, name)


def class_attribute(kind: type, name: str) -> Any:
    """Return what a class or a base of it has under a name, as it stands there; MISSING where none has it."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), MISSING)


def of_class_alone(obj: Any, name: str) -> bool:
    """Return whether a class has an attribute, and an instance that has none of its own may get one beside it."""
    found = MISSING if isinstance(obj, type) else class_attribute(type_of(obj), name)
    return found is not MISSING and not hasattr(type_of(found), "__set__")


def users_function(kind: type, name: str) -> Callable[..., Any] | None:
    """Return a method that a class has from the user: written by them, or one of a built-in class by another name."""
    base = next((base for base in kind.__mro__ if name in base.__dict__), object)
    own = base.__dict__.get(name)
    if isinstance(own, FunctionType):
        return None if is_plain_module(own.__module__) else own
    return own if isinstance(own, OF_C) and not is_plain_module(base.__module__) else None


def users_getattr(kind: type) -> Callable[..., Any] | None:
    """Return the `__getattr__` that a class has from the user."""
    return users_function(kind, "__getattr__")


def real_attribute(obj: Any, name: str) -> Any:
    """Return an attribute of the real object, MISSING where it has none; no `__getattr__` of the user's is run."""
    if isinstance(obj, type) or users_getattr(type_of(obj)) is None:
        return getattr(obj, name, MISSING)
    try:
        return cast(Any, type(obj)).__getattribute__(obj, name)
    except AttributeError:
        return MISSING


def computed_attribute(obj: Any, name: str, own: bool | None = None) -> Callable[[Any, Any], Any] | None:
    """Return what computes an attribute where the user's class does: a property, a descriptor written in Python.

    `own` says whether the instance has one under that name; without it, what stands on the real object does.
    """
    kind = type_of(obj)
    own = name in attributes(obj) if own is None else own
    made: Any = MISSING if isinstance(obj, type) else class_attribute(kind, name)
    if isinstance(made, property) and made.fget is not None:
        return lambda trace, x: trace.callable(made.fget)(x)
    get = users_function(type_of(made), "__get__")
    if get is not None and (hasattr(type_of(made), "__set__") or not own):
        return lambda trace, x: trace.callable(get)(made, x, kind)
    if isinstance(made, cached_property) and not own:
        compute: Any = made.func
        return lambda trace, x: _kept(trace, x, name, trace.callable(compute)(x))
    return None


def _kept(trace: Trace, x: Any, name: str, value: Any) -> Any:
    """Write an attribute that is computed once; return it. Where it is there already, the call is another one."""
    if trace.log.get(("attr", id(x), name)) is MISSING and id(x) not in trace.made.objects:
        trace.note_absent(x, name)
    trace.log_attribute(x, name, value)
    return value
