"""Calls in converted code: built-ins by their symbolic meaning, user functions converted in turn, the rest as it is."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from dy2st.runtime.builtins_table import BUILTINS
from dy2st.runtime.convert_if import switch
from dy2st.runtime.log import MISSING
from dy2st.runtime.tracing import CONTAINERS
from dy2st.runtime.variant import Variant

PLAIN = frozenset((*sys.stdlib_module_names, "dy2st", "numpy", "cupy", "scipy", "gast", "astor", "llvmlite", "pytest"))
"""Top-level packages whose functions are called as they are."""


def callable_for(trace: Any, f: Any) -> Callable[..., Any]:
    """Return what to call in place of `f`."""
    if isinstance(f, Variant):
        return lambda *a, **k: switch(trace, f, lambda g: callable_for(trace, g)(*a, **k))
    try:
        special = BUILTINS.get(f)
    except TypeError:  # an unhashable callable object
        special = None
    if special is not None:
        return functools.partial(special, trace)
    if isinstance(f, functools.partial):
        return functools.partial(callable_for(trace, f.func), *f.args, **f.keywords)
    if isinstance(f, types.MethodType) and convertible(f.__func__):
        return types.MethodType(trace.convert(f.__func__), f.__self__)
    if convertible(f):
        return trace.convert(f)
    inner = getattr(f, "__dy2st_function__", None)
    if inner is not None:
        return callable_for(trace, inner)
    call = getattr(type(f), "__call__", None)
    if not isinstance(f, type) and isinstance(call, types.FunctionType) and convertible(call):
        return types.MethodType(trace.convert(call), f)
    return functools.partial(foreign_call, trace, f)


def convertible(f: Any) -> bool:
    """Say whether `f` is a function of the user's."""
    if not isinstance(f, types.FunctionType) or getattr(f, "__dy2st_not_to_static__", False):
        return False
    if (f.__module__ or "").partition(".")[0] in PLAIN and not getattr(f, "__dy2st_convert__", False):
        return False
    return not (f.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))


def foreign_call(trace: Any, f: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call something that is not converted; containers are handed over as they stand in the trace."""
    for i, x in enumerate(args):
        if isinstance(x, Variant) and not isinstance(f, type):
            return switch(trace, x, lambda y: foreign_call(trace, f, *args[:i], y, *args[i + 1 :], **keywords))  # noqa: B023
    made = [plain(trace, x) for x in args]
    return f(*made, **{k: plain(trace, v) for k, v in keywords.items()})


def plain(trace: Any, x: Any) -> Any:
    """Return a container as it stands in the trace, itself where the trace did not write it."""
    if type(x) in CONTAINERS:
        found = trace.log.get(("items", id(x)))
        content = x if found is MISSING else found
        if isinstance(content, list) and any(type(i) in CONTAINERS for i in content):
            return [plain(trace, i) for i in content]
        if isinstance(content, dict) and any(type(i) in CONTAINERS for i in content.values()):
            return {k: plain(trace, i) for k, i in content.items()}
        return content
    if type(x) is tuple and any(type(i) in CONTAINERS for i in x):
        return tuple(plain(trace, i) for i in x)
    return x
