"""The state that a call can change, as it was: what `restore` puts back into the same objects."""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dy2st.ir.literals import is_array
from dy2st.jit.verifying.reachable import attributes, has_state, is_users, names_of, reachable
from dy2st.kinds import is_deque, is_dict, is_list, is_mutable_set, is_sequence, type_of
from dy2st.naming import is_plain_module
from dy2st.ops.core.rounded import TANGENT
from dy2st.optimizer.optimizer import Optimizer
from dy2st.runtime.eager.device import namespace_of
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tensor import Tensor

Undo = Callable[[], None]
_TENSOR = (
    "_grad",
    "leaf_hooks",
    "tape_index",
    "_name",
    "tape_node",
    "payload",
    "seen_base",
    "storage_version",
    "view_of",
    "stop_gradient",
)
_MISSING: Any = object()


class Snapshot:
    """Everything that `roots` lead to, and the state of all random generators."""

    def __init__(self, roots: Mapping[str, Any]):
        self._undo: list[Undo] = [*_generators()]
        for _, x in reachable(roots):
            self._undo += _undo_of(x)

    def restore(self) -> None:
        """Put everything back."""
        for undo in self._undo:
            undo()


def make_optimizer_state(roots: Mapping[str, Any]) -> None:
    """Let optimizers make their state, which they would do at the first step: a Program keeps what tracing made."""
    for optimizer in [x for _, x in reachable(roots) if isinstance(x, Optimizer)]:
        optimizer.make_state()


def change(*roots: Any) -> None:
    """Give tensors and arrays in lists, tuples and dicts other values, in place: the same elements in another order."""
    for x in roots:
        if isinstance(x, Tensor):
            _change_array(x.payload)
        elif is_array(x):
            _change_array(x)
        elif is_sequence(x):
            change(*x)
        elif is_dict(x):
            change(*x.values())


def _change_array(payload: Any) -> None:
    if not getattr(getattr(payload, "flags", None), "writeable", True):
        return
    if payload.size != 1:
        payload[...] = namespace_of(payload).roll(payload, 1)
    elif payload.dtype.kind == "b":
        payload[...] = ~payload
    else:
        payload[...] = payload * 1.5 if payload.dtype.kind in TANGENT else payload + 1


def shake(roots: Mapping[str, Any], up: bool) -> None:
    """Move the floats of all tensors by one unit in the last place, in place, up and down by turns."""
    for _, x in reachable(roots):
        array = x.payload if isinstance(x, Tensor) else None
        if array is None or array.dtype.kind not in TANGENT or not getattr(array.flags, "writeable", True):
            continue
        xp = namespace_of(array)
        parts = (array,) if array.dtype.kind == "f" else (array.real, array.imag)
        for part in parts:
            turns = (xp.arange(part.size).reshape(part.shape) % 2 == 0) == up
            part[...] = xp.nextafter(part, xp.where(turns, xp.inf, -xp.inf).astype(part.dtype))


def _generators() -> Iterator[Undo]:
    ours, python, numpy = default_generator().get_state(), random.getstate(), np.random.get_state()
    yield lambda: default_generator().set_state(ours)
    yield lambda: random.setstate(python)
    yield lambda: np.random.set_state(numpy)


def _undo_of(x: Any) -> Iterator[Undo]:
    """Yield what puts one object back."""
    if isinstance(x, Tensor):
        yield _tensor(x)
    elif is_array(x):
        if x.flags.writeable:
            yield _elements(x)
    elif is_list(x):
        yield _slice(x, x.copy())
    elif is_dict(x) or is_mutable_set(x):
        yield _cleared(x, x.copy(), x.update)
    elif is_deque(x):
        yield _cleared(x, x.copy(), x.extend)
    elif isinstance(x, types.FunctionType):
        yield from _function(x)
    elif isinstance(x, (random.Random, np.random.RandomState)):
        yield from _random(x)
    elif isinstance(x, np.random.Generator):
        yield _set(x.bit_generator, {"state": x.bit_generator.state})
    elif isinstance(x, type):
        if is_users(x):
            yield _set(x, {k: v for k, v in vars(x).items() if not k.startswith("__")})
    elif has_state(x):
        yield _object(x)


def _tensor(t: Tensor) -> Undo:
    slots = {name: getattr(t, name) for name in _TENSOR}
    more, elements = dict(t.__dict__), t.payload.copy()
    version = None if t.storage_version is None else t.storage_version.number

    def undo() -> None:
        for name, value in slots.items():
            setattr(t, name, value)
        t.__dict__.clear()
        t.__dict__.update(more)
        if getattr(getattr(t.payload, "flags", None), "writeable", True):
            t.payload[...] = elements
        if t.storage_version is not None:
            t.storage_version.number = version or 0

    return undo


def _elements(array: np.ndarray) -> Undo:
    kept = array.copy()

    def undo() -> None:
        array[...] = kept

    return undo


def _slice(x: list[Any], kept: list[Any]) -> Undo:
    def undo() -> None:
        x[:] = kept

    return undo


def _cleared(x: Any, kept: Any, fill: Callable[[Any], Any]) -> Undo:
    def undo() -> None:
        x.clear()
        fill(kept)

    return undo


def _function(f: types.FunctionType) -> Iterator[Undo]:
    """Yield what puts back the variables around a function."""
    if is_plain_module(f.__module__):
        return
    for cell in f.__closure__ or ():
        try:
            yield _set(cell, {"cell_contents": cell.cell_contents})
        except ValueError:  # not assigned yet
            continue
    scope = f.__globals__
    kept = {name: scope.get(name, _MISSING) for name in names_of(f.__code__)}

    def undo() -> None:
        for name, value in kept.items():
            if value is _MISSING:
                scope.pop(name, None)
            elif scope.get(name, _MISSING) is not value:
                scope[name] = value

    yield undo


def _random(x: Any) -> Iterator[Undo]:
    if isinstance(x, random.Random):
        state = x.getstate()
        yield lambda: x.setstate(state)
    else:
        found = x.get_state()
        yield lambda: x.set_state(found)


def _object(x: Any) -> Undo:
    kept = attributes(x)
    holder = getattr(x, "__dict__", {})

    def undo() -> None:
        for name in [n for n in holder if n not in kept]:
            del holder[name]
        for name, value in kept.items():
            if name in holder or not hasattr(type_of(x), name):
                holder[name] = value
            else:
                object.__setattr__(x, name, value)

    return undo


def _set(x: Any, kept: dict[str, Any]) -> Undo:
    def undo() -> None:
        for name, value in kept.items():
            if getattr(x, name, _MISSING) is not value:
                setattr(x, name, value)

    return undo
