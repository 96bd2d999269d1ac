"""Calls of `functools.lru_cache` and `cache`: a trace never leaves a value of its own in a cache of the user's.

A cache that is asked with Python values is asked for real, outside of the trace: what it keeps then are real values, as
eager would have left, and what it does it does once. One that is asked with values of the run never has them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from dy2st.ir.context import replaced
from dy2st.ir.program import Value
from dy2st.kinds import is_tuple
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.effects.code_names import contents_of, names_of
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.reach import Reach, is_atom
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import Variant

_CACHED: type = type(functools.cache(len))


def cached_call(trace: Trace, f: Any, callable_for: Callable[[Any, Any], Any]) -> Callable[..., Any] | None:
    """Return what to call in the place of a function with a cache; None where `f` has none."""
    if isinstance(f, types.MethodType) and isinstance(f.__func__, _CACHED):
        return functools.partial(_call, trace, f.__func__, callable_for, f.__self__)
    if not isinstance(f, _CACHED):
        return None
    return functools.partial(_call, trace, f, callable_for)


def _call(trace: Trace, f: Any, callable_for: Callable[[Any, Any], Any], *args: Any, **keywords: Any) -> Any:
    given = (*args, *keywords.values())
    if any(isinstance(x, Tensor) and not isinstance(x.payload, Value) for x in given):
        raise needs_value(f"{f.__name__}() keeps its results by its arguments, and is asked with a tensor from outside",
                          "call the function without its cache: f.__wrapped__(x)")  # fmt: skip
    if any(isinstance(x, (Scalar, Variant)) for x in given):
        raise needs_value(f"{f.__name__}() keeps its results by its arguments, and one is a value of the run",
                          "call the function without its cache: f.__wrapped__(x)", given)  # fmt: skip
    if Reach(trace, given).symbolic and not all(is_atom(x) or id(x) in trace.external for x in given):
        return callable_for(trace, f.__wrapped__)(*args, **keywords)
    if _has_written(trace) and not (all(map(is_atom, given)) and is_of_arguments_alone(f.__wrapped__)):
        raise needs_value(f"{f.__name__}() keeps its results, and is asked after something outside was changed",
                          "call it before, or without its cache: f.__wrapped__(x)")  # fmt: skip
    if trace.builder is not trace.root and _does_something(trace, callable_for(trace, f.__wrapped__), args, keywords):
        text = "keeps its results, and does more than to compute them, in a branch or loop of the run"
        raise needs_value(f"{f.__name__}() {text}", "call it before the branch or loop")
    with replaced(trace=None):
        found = f(*args, **keywords)
    for x in found if is_tuple(found) else (found,):
        if isinstance(x, CONTAINERS) or is_plain_object(x):  # of the cache, which keeps it for the next call
            trace.mark_external(x)
    return found


def _has_written(trace: Trace) -> bool:
    """Return whether something that a function may read was changed, of which only the trace knows."""
    for key in dict.fromkeys(key for overlay in trace.log.overlays for key in overlay):
        if key[0] in ("cell", "global"):
            return True
        if key[0] in ("attr", "items", "tail") and trace.is_from_outside(trace.log.owner(key)):
            return True
    return False


def is_of_arguments_alone(f: Any, met: set[Any] | None = None) -> bool:
    """Return whether a function of the user's names nothing from outside that may change.

    >>> kept = []
    >>> is_of_arguments_alone(lambda k: len(range(k))), is_of_arguments_alone(lambda k: kept)
    (True, False)
    """
    met = set() if met is None else met
    if not isinstance(f, types.FunctionType):
        return False
    if f in met:
        return True
    met.add(f)
    codes, names = [f.__code__], set[str]()
    while codes:
        code = codes.pop()
        names.update(names_of(code, "LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"))
        codes += (x for x in code.co_consts if isinstance(x, types.CodeType))
    named = [*(f.__globals__[name] for name in names if name in f.__globals__), *contents_of(f)]
    return all(_is_fixed(x) or is_of_arguments_alone(x, met) for x in named)


def _is_fixed(x: Any) -> bool:
    if isinstance(x, (types.ModuleType, type)):
        return is_plain_module(x.__name__ if isinstance(x, types.ModuleType) else x.__module__)
    return is_atom(x) and not isinstance(x, types.FunctionType)


def _does_something(trace: Trace, call: Callable[..., Any], args: Any, keywords: Any) -> bool:
    """Return whether a call writes or does something; it is taken back."""
    mark = trace.checkpoint()
    try:
        call(*args, **keywords)
        return bool(trace.builder.since(mark[0])) or trace.log.overlays[-1].keys() != mark[1].keys()
    finally:
        trace.rollback(mark)
