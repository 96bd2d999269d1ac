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
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.effects.reach import Reach
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
    reach = Reach(trace, given)
    if reach.symbolic:
        return callable_for(trace, f.__wrapped__)(*args, **keywords)
    if any(key[0] in ("attr", "items", "tail", "cell", "global") for o in trace.log.overlays for key in o):
        return callable_for(trace, f.__wrapped__)(*args, **keywords)
    if trace.builder is not trace.root and _does_something(trace, callable_for(trace, f.__wrapped__), args, keywords):
        text = "keeps its results, and does more than to compute them, in a branch or loop of the run"
        raise needs_value(f"{f.__name__}() {text}", "call it before the branch or loop")
    with replaced(trace=None):
        return f(*args, **keywords)


def _does_something(trace: Trace, call: Callable[..., Any], args: Any, keywords: Any) -> bool:
    """Return whether a call writes or does something; it is taken back."""
    mark = trace.checkpoint()
    try:
        call(*args, **keywords)
        return bool(trace.builder.since(mark[0])) or trace.log.overlays[-1].keys() != mark[1].keys()
    finally:
        trace.rollback(mark)
