"""What Python between the parts of a function calls: the user's functions and layers run as Programs in turn."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st.ir.context import current, make_current, with_layer
from dy2st.jit.dispatch.bound_methods import bound_function
from dy2st.kinds import is_sequence, type_of
from dy2st.nn.hooks import run_post_hooks, run_pre_hooks
from dy2st.nn.layer import Layer
from dy2st.nn.layers.containers import Sequential
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.builtins.calls import convertible

Make = Callable[[types.FunctionType, Any], Callable[..., Any]]
"""Makes the static function of a function, or of a method of an object."""
_RUN_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Routing:
    """Tells what to call in place of a function."""

    def __init__(self, make: Make):
        self._make = make

    def of(self, f: Any) -> Any:
        """Return what to call in place of `f`: `f` itself where that is not the user's."""
        kind = type_of(f)
        if kind is types.FunctionType:
            return self._guarded(f, f, f) if _is_fixed(f) else f
        if kind is types.MethodType:
            owner = f.__self__
            return self._guarded(f, f.__func__, owner) if isinstance(owner, Layer) and _is_fixed(f.__func__) else f
        if isinstance(f, Layer) and kind.__call__ is Layer.__call__ and current().trace is None:
            run = f.forward
            inner = _in_turn(self, f) if kind.forward is Sequential.forward else self.of(run)
            return f if inner is run else _called(f, inner)
        return f

    def _guarded(self, f: Any, function: Any, owner: Any) -> Callable[..., Any]:
        """Return the static function of `f`, for calls with tensors and without arrays."""
        instance = None if owner is f else owner

        def call(*args: Any, **keywords: Any) -> Any:
            given = [*args, *keywords.values()]
            if any(isinstance(x, np.ndarray) for x in given) or not any(map(_has_tensor, given)):
                return f(*args, **keywords)
            static = bound_function(function, owner, {}, lambda _: self._make(function, instance))
            return static(*args, **keywords)

        return call


def _is_fixed(f: Any) -> bool:
    """Return whether a function is the user's, and the same one at each call."""
    if not convertible(f) or "<locals>" in f.__qualname__ or f.__code__.co_flags & _RUN_LATER:
        return False
    return f.__globals__.get("__name__") == f.__module__  # no wrapper of a library that took over the names


def _has_tensor(x: Any) -> bool:
    if is_sequence(x):
        return any(isinstance(item, Tensor) for item in x)
    return isinstance(x, Tensor)


def _called(layer: Layer, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call of a layer with another function in the place of its `forward`."""

    def call(*inputs: Any, **keywords: Any) -> Any:
        before = with_layer(layer)
        try:
            if layer._forward_pre_hooks:
                inputs = run_pre_hooks(layer, inputs, keywords)
            outputs = run(*inputs, **keywords)
            return run_post_hooks(layer, inputs, outputs) if layer._forward_post_hooks else outputs
        finally:
            make_current(before)

    return call


def _in_turn(routing: Routing, layers: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        for layer in list(layers):
            x = routing.of(layer)(x)
        return x

    return run
