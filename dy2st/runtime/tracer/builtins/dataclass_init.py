"""The `__init__` that a dataclass wrote: there is no source to convert, so it is done field by field.

self.v = v                          as the user's code would: through `__setattr__`, properties, the side-effect log
self.tags = factory()               a converted call, as is that of
self.__post_init__(*init_vars)
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from dy2st.kinds import variables_of
from dy2st.late import types_of
from dy2st.runtime.tracer.access.attributes import attr, set_attr, set_plain_attr
from dy2st.runtime.tracer.effects.trace import Trace


def is_of_dataclass(f: FunctionType) -> bool:
    """Return whether a function is the `__init__` that a dataclass wrote."""
    return f.__code__.co_qualname == "__create_fn__.<locals>.__init__"


def init_of_dataclass(trace: Trace, f: FunctionType, made: Any, /, *args: Any, **keywords: Any) -> None:
    """Do what the `__init__` that a dataclass wrote does."""
    owner: Any = next(kind for kind in type(made).__mro__ if vars(kind).get("__init__") is f)
    try:
        given = inspect.signature(f).bind(made, *args, **keywords).arguments
    except TypeError:
        f(made, *args, **keywords)  # Python words the error
        raise
    absent = types_of("dataclasses:_MISSING_TYPE")
    init_vars: list[Any] = []
    for name, field in owner.__dataclass_fields__.items():
        kind = field._field_type.name
        if kind == "_FIELD_CLASSVAR":
            continue
        if field.init and name in given:
            value = given[name]
        elif not isinstance(field.default_factory, absent):
            value = trace.callable(field.default_factory)()
        elif field.init or type(variables_of(owner).get(name)).__name__ == "member_descriptor":
            value = field.default
        else:
            continue
        if kind == "_FIELD_INITVAR":
            init_vars.append(value)
        elif owner.__dataclass_params__.frozen:
            set_plain_attr(trace, made, name, value)
        else:
            set_attr(trace, made, name, value)
    if "__post_init__" in f.__code__.co_names:
        trace.callable(attr(trace, made, "__post_init__"))(*init_vars)
