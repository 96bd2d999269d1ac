"""TranslatedLayer: a Layer made of a file. Its methods are Programs; nothing of the class that was saved is needed.

Tensors stand where they stood: "fc.weight" is the parameter `weight` of a plain Layer `fc`. So `state_dict`,
optimizers, `train()`/`eval()` and `jit.save` work as for the layer that was saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.ir.program import Program
from dy2st.jit.serialization.loaded_method import LoadedMethod
from dy2st.jit.serialization.schema import SavedLayer, StateTensor
from dy2st.nn.layer import Layer
from dy2st.runtime.eager import device
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


class Part(Layer):
    """A layer below a TranslatedLayer: it holds tensors and computes nothing by itself."""

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Refuse: a file holds the methods of the layer that was saved, not those of its parts."""
        raise NotImplementedError(
            "only the whole layer was saved, not each of its parts: call the layer that jit.load returned"
        )


class TranslatedLayer(Layer):
    """What `paddle.jit.load` returns: call it, train it, take its `state_dict`, save it again.

    Methods that were saved beside `forward` are there by their names.

    >>> import tempfile
    >>> import dy2st as paddle
    >>> from dy2st.runtime.tracer.input_spec import InputSpec
    >>> folder = tempfile.TemporaryDirectory()
    >>> linear = paddle.nn.Linear(3, 2)
    >>> _ = paddle.jit.save(linear, folder.name + "/linear", input_spec=[InputSpec([None, 3])])
    >>> loaded = paddle.jit.load(folder.name + "/linear")
    >>> x = paddle.ones([5, 3])
    >>> bool((loaded(x) == linear(x)).all()), sorted(loaded.state_dict())
    (True, ['bias', 'weight'])
    >>> folder.cleanup()
    """

    def __init__(self, saved: SavedLayer):
        super().__init__()
        self.__dict__["_saved"] = saved
        self.__dict__["_places"] = _build(self, saved.state)
        for call in (call for method in saved.methods.values() for call in method.calls):
            for target, _ in call.writes:
                if target.kind == "attribute" and target.name not in saved.state:
                    _check_name("attribute", target.name or "")
        self.__dict__["_methods"] = {
            name: LoadedMethod(self, name, method, saved.program) for name, method in saved.methods.items()
        }
        for name, method in self._methods.items():
            if name != "forward":
                _check_name("method", name)
                self.__dict__[name] = method
        self.train(saved.training)

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Run the Program that was saved for arguments like these, in the mode in which the layer is."""
        return self._methods["forward"](*inputs, **keywords)

    def program(self, method_name: str = "forward") -> Program:
        """Return the Program that a method runs in the present mode."""
        if method_name not in self._methods:
            raise ValueError(f"no method {method_name!r} was saved; there are {', '.join(map(repr, self._methods))}")
        return self._methods[method_name].main_program

    def tensor_at(self, name: str) -> Any:
        """Return what stands under a dotted name of the saved state now."""
        owner, last = self._places[name]
        for registry in ("_parameters", "_buffers"):
            if last in owner.__dict__[registry]:
                return owner.__dict__[registry][last]
        return owner.__dict__.get(last)

    def _set_at(self, path: str, value: Any) -> None:
        """Set the attribute at a dotted name, which need not have been there."""
        owner, last = self._place_of(path)
        setattr(owner, last, value)

    def _place_of(self, path: str) -> tuple[Layer, str]:
        """Return the layer that has the attribute at a dotted name, and the attribute's name."""
        if path not in self._places:
            self._places[path] = part_of(self, path)
        return self._places[path]

    def __repr__(self) -> str:
        methods = ", ".join(f"{name}{method.signature}" for name, method in self._methods.items())
        return f"TranslatedLayer({methods})"


def reserved(path: str) -> bool:
    """Return whether a dotted name cannot be an attribute because loaded layers have it themselves."""
    return any(hasattr(TranslatedLayer, name) or name in _OWN or _is_dunder(name) for name in path.split("."))


_OWN = frozenset({*vars(Layer()), "_saved", "_places", "_methods"})


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _check_name(what: str, name: str) -> None:
    if reserved(name):
        raise FileFormatError(f"{what} {name!r:.60} has a name that loaded layers have themselves")


def _build(root: Layer, state: Mapping[str, StateTensor]) -> dict[str, tuple[Layer, str]]:
    """Make the tensors of the state and the layers that hold them; return where each stands."""
    made: dict[str, Tensor] = {}
    found: dict[str, tuple[Layer, str]] = {}
    for said in state.values():
        t = made[said.name] = made[said.same] if said.same is not None else _tensor(said)
        found[said.name] = owner, last = part_of(root, said.name)
        if said.kind == "attribute":
            _check_name("state", said.name)
            setattr(owner, last, t)
        elif said.kind == "parameter":
            owner._parameters[last] = t
        else:
            owner._buffers[last] = t
            if said.kind == "temporary":
                owner._non_persistable_buffer_names_set.add(last)
    return found


def _tensor(said: StateTensor) -> Tensor:
    array = device.move(said.array, device.current_place())
    if said.kind == "parameter":
        return Parameter(Tensor(array), requires_grad=not said.stop_gradient)
    made = Tensor(array, said.stop_gradient)
    made.persistable = said.kind == "buffer"
    return made


def part_of(root: Layer, path: str) -> tuple[Layer, str]:
    """Return the layer that holds a dotted name, made where it is missing, and the last part of the name."""
    *names, last = path.split(".")
    layer = root
    for name in names:
        below = layer._sub_layers.get(name)
        if below is None:
            below = layer._sub_layers[name] = Part()
            below.training = layer.training
        layer = below
    return layer, last


def now(layer: TranslatedLayer) -> SavedLayer:
    """Return what a file holds of a loaded layer as it is now, to save it again."""
    saved = layer._saved
    return SavedLayer(saved.program, saved.methods, dict(_state_now(layer, saved.state)), layer.training)


def _state_now(layer: TranslatedLayer, state: Mapping[str, StateTensor]) -> Iterator[tuple[str, StateTensor]]:
    first: dict[int, str] = {}
    for name, said in state.items():
        t = layer.tensor_at(name)
        if not isinstance(t, Tensor):
            raise TypeError(f"'{name}' of the loaded layer is no longer a tensor but {type(t).__name__}")
        same = first.setdefault(id(t), name)
        array = device.move(t.array("a file"), device.CPU)
        if array.dtype != said.array.dtype or array.ndim != said.array.ndim:
            raise TypeError(
                f"'{name}' of the loaded layer is now {array.dtype}{list(array.shape)}; its Programs take "
                f"{said.array.dtype}{list(said.array.shape)}"
            )
        yield name, StateTensor(name, said.kind, t.stop_gradient, np.asarray(array), None if same == name else same)
