"""The attributes of a Layer: parameters, buffers and sublayers stand in registries, all else where Python puts it."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from dy2st.ir.context import current
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import changes
from dy2st.runtime.gc_pause import while_it_lives

_REGISTRIES = ("_parameters", "_buffers", "_sub_layers")
_LAYERS = "dy2st.nn.layers."
_BASES = (__name__, "dy2st.nn.layer", "builtins")


def is_read_here(layer: Any, name: str) -> bool:
    """Return whether methods of this package, whose reads no trace sees, may read an attribute of a layer."""
    kind = type(layer)
    return is_plain_module(kind.__module__) or name in _names(kind)


@while_it_lives
def _names(kind: type) -> frozenset[str]:
    """Return the names in the methods that a class of the user's has of layers of this package."""
    classes = [c for c in kind.__mro__ if is_plain_module(c.__module__) and c.__module__ not in _BASES]
    methods = [f for c in classes for f in vars(c).values() if isinstance(f, FunctionType)]
    return frozenset(name for f in methods for name in f.__code__.co_names)


def set_anew(layer: Any, name: str, value: Any) -> None:
    """Set an attribute that each call of a layer computes before anything reads it, so that it is no setting."""
    computed = layer.__dict__.setdefault("_computed", set())
    computed.add(name)
    trace = current().trace
    if trace is not None and hasattr(trace, "lend_attribute"):
        trace.lend_attribute(layer, name, value)
    else:
        setattr(layer, name, value)


class RegisteredAttributes:
    """Base of Layer: reads, sets and deletes attributes where the registries have them."""

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for registry in _REGISTRIES:
            if registry in state and name in state[registry]:
                trace = current().trace
                if trace is not None and hasattr(trace, "note_read"):
                    trace.note_read(self, name)
                return state[registry][name]
        if name in ("name", "_name") and any(c.__module__.startswith(_LAYERS) for c in type(self).__mro__):
            return None  # Paddle's layers keep the `name=` that they were made with, which here is nobody's
        hint = "" if "_parameters" in state else " (its __init__ has not called super().__init__())"
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._place("_parameters", name, value)
        elif isinstance(value, RegisteredAttributes):
            self._place("_sub_layers", name, value)
        else:
            self._set_plain(name, value)

    def _set_plain(self, name: str, value: Any) -> None:
        state = self.__dict__
        for registry, kind in (("_parameters", "Parameter"), ("_sub_layers", "Layer"), ("_buffers", "Tensor")):
            if name not in state.get(registry, ()):
                continue
            if value is None or (registry == "_buffers" and isinstance(value, Tensor)):
                state[registry][name] = value
                return
            if registry == "_buffers":
                raise TypeError(f"buffer {name!r} takes a Tensor or None, not {type(value).__name__}")
            raise TypeError(
                f"{name!r} is a {kind} of this layer and takes a {kind} or None, not {type(value).__name__}"
            )
        if name in state and is_read_here(self, name):
            changes.count += 1
        object.__setattr__(self, name, value)

    def _place(self, registry: str, name: str, value: Any) -> None:
        state = self.__dict__
        if registry not in state:
            raise RuntimeError(f"call super().__init__() before the attribute {name!r} of {type(self).__name__} is set")
        state.pop(name, None)
        for other in _REGISTRIES:
            if other != registry:
                state[other].pop(name, None)
        state[registry][name] = value

    def __delattr__(self, name: str) -> None:
        for registry in _REGISTRIES:
            if name in self.__dict__[registry]:
                del self.__dict__[registry][name]
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(name for registry in _REGISTRIES for name in self.__dict__[registry])})
