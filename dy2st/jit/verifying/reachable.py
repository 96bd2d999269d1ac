"""What a call can read and change: the objects that a function and its arguments lead to, under the user's names.

The way goes through closures, the globals that the code names, `self`, attributes and items; into the user's objects,
Layers and optimizers, and not into libraries.
"""

from __future__ import annotations

import functools
import re
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dy2st.jit.static_function import StaticFunction
from dy2st.kinds import is_deque, is_dict, is_sequence, type_of
from dy2st.naming import is_plain_module
from dy2st.nn.layer import Layer
from dy2st.optimizer.lr.base import LRScheduler
from dy2st.optimizer.optimizer import Optimizer
from dy2st.runtime.eager.tensor import Tensor

MOST = 200_000
"""No more objects than this are looked at."""
_OWN = (Layer, Optimizer, LRScheduler)
_REGISTRY = re.compile(r"\._(?:parameters|buffers|sub_layers)\['(\w+)'\]")
_LEAVES: tuple[type, ...] = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    types.ModuleType,
    types.BuiltinFunctionType,
)
_METHODS: tuple[type, ...] = (staticmethod, classmethod)
_CACHES = ((Optimizer, "_own_lr_tensor"), (LRScheduler, "_tensor"))
"""Attributes of dy2st's objects that only a Program makes."""
_OF_CLASSES = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__"))


def reachable(roots: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every object once, tensors and plain values each time, with the path that leads to it."""
    seen: set[int] = set()
    waiting = deque(roots.items())
    while waiting and len(seen) < MOST:
        path, x = waiting.popleft()
        known = id(x) in seen and not isinstance(x, _LEAVES)
        if known and not isinstance(x, Tensor):
            continue
        seen.add(id(x))
        yield _REGISTRY.sub(r".\1", path).lstrip("."), x
        if not known:
            waiting.extend(children(path, x))


def children(path: str, x: Any) -> list[tuple[str, Any]]:
    """List what an object holds."""
    if isinstance(x, (*_LEAVES, np.ndarray, set, frozenset)):
        return []
    if isinstance(x, Tensor):
        return [] if x.grad is None else [(f"{path}.grad", x.grad)]
    if is_dict(x):
        return [(f"{path}[{k!r}]", v) for k, v in x.items()]
    if is_sequence(x) or is_deque(x):
        names = getattr(x, "_fields", None)
        return [(f"{path}.{names[i]}" if names else f"{path}[{i}]", v) for i, v in enumerate(x)]
    found = _of_callable(path, x)
    if found is not None:
        return found
    if not has_state(x):
        return []
    held = [(f"{path}.{k}", v) for k, v in attributes(x).items() if not _is_cache(x, k)]
    return [*held, (type(x).__name__, type(x))]


def _is_cache(x: Any, name: str) -> bool:
    return any(isinstance(x, kind) and name == cache for kind, cache in _CACHES)


def has_state(x: Any) -> bool:
    """Return whether an object may hold state of the user's: one of his classes, a Layer, an optimizer."""
    return isinstance(x, _OWN) or is_users(type_of(x))


def is_users(kind: type) -> bool:
    """Return whether a class is of the user's own."""
    return kind.__module__ != "builtins" and not is_plain_module(kind.__module__)


def attributes(x: Any) -> dict[str, Any]:
    """Return the attributes that an object itself has, those in slots too."""
    found = dict(getattr(x, "__dict__", {}))
    for kind in type(x).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(x, name):
                found[name] = getattr(x, name)
    return found


def _of_callable(path: str, x: Any) -> list[tuple[str, Any]] | None:
    """List what a function or a class leads to; None for anything else."""
    if isinstance(x, types.FunctionType):
        return [] if is_plain_module(x.__module__) else [*variables(x).items(), *(x.__kwdefaults__ or {}).items()]
    if isinstance(x, types.MethodType):
        return [("self", x.__self__), (path, x.__func__)]
    if isinstance(x, StaticFunction):
        return [(path, x.__dy2st_function__)]
    if isinstance(x, _METHODS):
        return [(path, x.__func__)]
    if isinstance(x, property):
        return [(path, f) for f in (x.fget, x.fset) if f is not None]
    if isinstance(x, functools.partial):
        return [(path, x.func), (f"{path}.args", x.args), (f"{path}.keywords", x.keywords)]
    if isinstance(x, type):
        if not is_users(x):
            return []
        held = [(f"{x.__name__}.{k}", v) for k, v in vars(x).items() if k not in _OF_CLASSES]
        return [*held, *((base.__name__, base) for base in x.__bases__)]
    return None


def variables(function: types.FunctionType) -> dict[str, Any]:
    """Return the variables around a function that its code names: free ones, globals, attributes of user's modules."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    names = names_of(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            if not is_plain_module(value.__name__):
                found.update((f"{name}.{n}", vars(value)[n]) for n in names if n in vars(value))
        elif name in function.__globals__:
            found.setdefault(name, value)
    return found


def names_of(code: types.CodeType) -> list[str]:
    """List the global and attribute names in a function and in the functions inside of it."""
    found = dict.fromkeys(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found.update(dict.fromkeys(names_of(const)))
    return list(found)
