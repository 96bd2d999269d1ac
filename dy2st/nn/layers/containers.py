"""Layers that hold layers or parameters: in order, in a list, in a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dy2st.nn.layer import Layer
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


class Sequential(Layer):
    """Layers that run one after the other; given as layers, as (name, layer) pairs, or as a dict.

    >>> import dy2st as paddle
    >>> model = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.ReLU())
    >>> model(paddle.ones([1, 2])).shape
    [1, 3]
    """

    def __init__(self, *layers: Any):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            layers = tuple(layers[0].items())
        elif len(layers) == 1 and isinstance(layers[0], (list, tuple)) and not _is_pair(layers[0]):
            layers = tuple(layers[0])
        for i, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, (list, tuple)) else (str(i), layer)
            self.add_sublayer(str(name), layer)

    def forward(self, input: Any) -> Any:
        for layer in self._seen()._sub_layers.values():
            input = layer(input)
        return input

    def __len__(self) -> int:
        return len(self._seen()._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._seen()._sub_layers.values())

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            return self._seen()._sub_layers[at]
        layers = list(self._seen()._sub_layers.items())
        if isinstance(at, slice):
            return type(self)(*(layer for _, layer in layers[at]))
        return layers[_place(at, len(layers), "Sequential")][1]

    def __setitem__(self, at: Any, layer: Layer) -> None:
        name = at if isinstance(at, str) else list(self._sub_layers)[_place(at, len(self), "Sequential")]
        self.add_sublayer(name, layer)

    def __delitem__(self, at: Any) -> None:
        name = at if isinstance(at, str) else list(self._sub_layers)[_place(at, len(self), "Sequential")]
        del self._sub_layers[name]

    def append(self, layer: Layer) -> Sequential:
        """Add a layer at the end; return the container."""
        self.add_sublayer(str(len(self)), layer)
        return self

    def insert(self, index: int, layer: Layer) -> Sequential:
        """Put a layer before the one at `index`; numbered names move up."""
        layers = list(self._sub_layers.values())
        layers.insert(index, layer)
        _replace(self._sub_layers, layers)
        return self

    def extend(self, layers: Iterable[Layer]) -> Sequential:
        """Add layers at the end; return the container."""
        for layer in layers:
            self.append(layer)
        return self


class LayerList(Layer):
    """A list of layers, which are registered as sublayers "0", "1", ..."""

    def __init__(self, sublayers: Iterable[Layer] | None = None):
        super().__init__()
        for i, layer in enumerate(sublayers or ()):  # not by `append`, by which a trace would see it before it is whole
            self.add_sublayer(str(i), layer)

    def __len__(self) -> int:
        return len(self._seen()._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._seen()._sub_layers.values())

    def __getitem__(self, at: Any) -> Any:
        layers = list(self._seen()._sub_layers.values())
        return type(self)(layers[at]) if isinstance(at, slice) else layers[_place(at, len(layers), "LayerList")]

    def __setitem__(self, at: int, layer: Layer) -> None:
        self.add_sublayer(str(_place(at, len(self), "LayerList")), layer)

    def __delitem__(self, at: Any) -> None:
        layers = list(self._sub_layers.values())
        del layers[at if isinstance(at, slice) else _place(at, len(layers), "LayerList")]
        _replace(self._sub_layers, layers)

    def append(self, sublayer: Layer) -> LayerList:
        """Add a layer at the end; return the list."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index: int, sublayer: Layer) -> None:
        """Put a layer before the one at `index`."""
        if not isinstance(sublayer, Layer):
            raise TypeError(f"LayerList holds Layers, not {type(sublayer).__name__}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"LayerList: place {index} is outside of {len(self)} layers")
        layers = list(self._sub_layers.values())
        layers.insert(index, sublayer)
        _replace(self._sub_layers, layers)

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Add layers at the end; return the list."""
        for layer in sublayers:
            self.append(layer)
        return self


class LayerDict(Layer):
    """A dict of layers, which are registered under their keys."""

    def __init__(self, sublayers: Any = None):
        super().__init__()
        if sublayers is not None:
            self.update(sublayers)

    def __getitem__(self, key: str) -> Layer:
        return self._seen()._sub_layers[key]

    def __setitem__(self, key: str, sublayer: Layer) -> None:
        self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._seen()._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen()._sub_layers)

    def __contains__(self, key: str) -> bool:
        return key in self._seen()._sub_layers

    def clear(self) -> None:
        """Take all layers out."""
        self._sub_layers.clear()

    def pop(self, key: str) -> Layer:
        """Take a layer out and return it."""
        return self._sub_layers.pop(key)

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._seen()._sub_layers.keys()

    def items(self) -> Iterable[tuple[str, Layer]]:
        """Return pairs of keys and layers."""
        return self._seen()._sub_layers.items()

    def values(self) -> Iterable[Layer]:
        """Return the layers."""
        return self._seen()._sub_layers.values()

    def update(self, sublayers: Any) -> None:
        """Add the layers of a dict, or of (key, layer) pairs."""
        for pair in sublayers.items() if hasattr(sublayers, "items") else sublayers:
            if len(pair) != 2:
                raise ValueError(f"LayerDict.update needs pairs of a key and a layer, not {len(pair)} items")
            self.add_sublayer(*pair)


class ParameterList(Layer):
    """A list of parameters, which are registered as "0", "1", ..."""

    def __init__(self, parameters: Iterable[Parameter] | None = None):
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def __len__(self) -> int:
        return len(self._seen()._parameters)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, at: int) -> Tensor:
        return getattr(self, str(_place(at, len(self), "ParameterList")))

    def __setitem__(self, at: int, parameter: Parameter) -> None:
        self.add_parameter(str(_place(at, len(self), "ParameterList")), parameter)

    def append(self, parameter: Parameter) -> ParameterList:
        """Add a parameter at the end; return the list."""
        self.add_parameter(str(len(self)), parameter)
        return self


class ParameterDict(Layer):
    """A dict of parameters, which are registered under their keys."""

    def __init__(self, parameters: Any = None):
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Tensor:
        if key not in self._seen()._parameters:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, parameter: Parameter) -> None:
        self.add_parameter(key, parameter)

    def __len__(self) -> int:
        return len(self._seen()._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen()._parameters)

    def update(self, parameters: Any) -> None:
        """Add the parameters of a dict, or of (key, parameter) pairs."""
        for key, parameter in parameters.items() if hasattr(parameters, "items") else parameters:
            self.add_parameter(key, parameter)


def _is_pair(layers: Any) -> bool:
    return len(layers) == 2 and isinstance(layers[0], str)


def _place(at: Any, count: int, name: str) -> int:
    found = at.__index__()
    if not -count <= found < count:
        raise IndexError(f"{name}: place {found} is outside of {count} items")
    return found % count


def _replace(registry: dict[str, Layer], layers: list[Layer]) -> None:
    registry.clear()
    registry.update({str(i): layer for i, layer in enumerate(layers)})
