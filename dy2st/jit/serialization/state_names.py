"""The names under which a file keeps tensors: where they stand below the layer, as `state_dict` has them.

The layer's own tensors are named by path ("fc.weight"). What a function reaches through its closure is named after the
variable; anything else is `state_0`, `state_1`, ... No name of a class or module goes into a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dy2st.ir.program import Value
from dy2st.jit.guards.guards import StateSlot
from dy2st.jit.serialization.schema import StateTensor
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


class StateNames:
    """Names tensors and layers, and collects the tensors that a file has to hold."""

    def __init__(self, owner: Any, function: Callable[..., Any] | None = None):
        self.tensors: dict[str, tuple[Tensor, str]] = {}
        """Name to tensor and kind; every name of a tensor that has several."""
        self._kinds: dict[int, tuple[str, str]] = {}
        self._names: dict[int, str] = {}
        self._layers: dict[int, str] = {}
        self._kept: list[Any] = []
        if isinstance(owner, Layer):
            self._add_layer(owner, "")
            for name, (kind, t) in _registered(owner, ""):
                if kind != "temporary":
                    self._take(name, t, kind)
            return
        for name, x in _reached(owner, function):
            if isinstance(x, Layer):
                self._add_layer(x, name)
            elif isinstance(x, Tensor):
                self._kinds.setdefault(id(x), (name, "parameter" if isinstance(x, Parameter) else "buffer"))

    def _add_layer(self, layer: Layer, prefix: str) -> None:
        for path, below in layer.named_sublayers(prefix, include_self=True):
            self._layers.setdefault(id(below), path)
        for name, (kind, t) in _registered(layer, prefix):
            self._kinds.setdefault(id(t), (name, kind))

    def _take(self, name: str, t: Tensor, kind: str) -> str:
        self.tensors[name] = t, kind
        self._kept.append(t)
        return self._names.setdefault(id(t), name)

    def name(self, slot: StateSlot) -> str:
        """Return the name of a tensor that a Program reads; it is in `tensors` from then on."""
        t = slot.fetch()
        if id(t) in self._names:
            return self._names[id(t)]
        if id(t) in self._kinds:
            name, kind = self._kinds[id(t)]
            return self._take(name, t, kind)
        path = None if slot.name is None else self.path(slot.owner, slot.name)
        if path is not None and path not in self.tensors:
            return self._take(path, t, "parameter" if isinstance(t, Parameter) else "attribute")
        number = 0
        while f"state_{number}" in self.tensors:
            number += 1
        return self._take(f"state_{number}", t, "parameter" if isinstance(t, Parameter) else "temporary")

    def known(self, t: Any) -> str | None:
        """Return the name of a tensor that has one."""
        return self._names.get(id(t))

    def path(self, owner: Any, name: str) -> str | None:
        """Return the dotted name of an attribute of a layer that is in the file; None for other objects."""
        below = self._layers.get(id(owner))
        if below is None or not name.isidentifier():
            return None
        return f"{below}.{name}" if below else name

    def state(self) -> dict[str, StateTensor]:
        """Return the tensors with their elements, each once."""
        found: dict[str, StateTensor] = {}
        for name, (t, kind) in self.tensors.items():
            payload = t.payload
            if isinstance(payload, Value):
                raise TypeError(f"'{name}' belongs to a Program that is being built and has no elements to save")
            array = payload.get() if hasattr(payload, "get") else payload
            first = self._names[id(t)]
            found[name] = StateTensor(name, kind, t.stop_gradient, array, None if first == name else first)
        return found


def _registered(layer: Layer, prefix: str) -> Iterator[tuple[str, tuple[str, Tensor]]]:
    """Yield every name of every parameter and buffer below a layer, those of tied layers too."""
    start = f"{prefix}." if prefix else ""
    own = {id(t) for t in layer.state_dict().values()}
    for name, t in layer.to_static_state_dict().items():
        kind = "parameter" if isinstance(t, Parameter) else "buffer" if id(t) in own else "temporary"
        yield start + name, (kind, t)


def _reached(owner: Any, function: Callable[..., Any] | None) -> Iterator[tuple[str, Any]]:
    """Yield what a function reaches through its closure and the object it is bound to."""
    code = getattr(function, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that was not assigned yet
            continue
    attributes: dict[str, Any] = getattr(owner, "__dict__", {})
    yield from attributes.items()
