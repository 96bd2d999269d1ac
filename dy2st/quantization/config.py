"""Which layers of a model are quantized, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.nn.layer import Layer
from dy2st.nn.layers.activation import ReLU
from dy2st.nn.layers.conv import Conv2D
from dy2st.nn.layers.linear import Linear
from dy2st.nn.layers.pooling import AvgPool2D
from dy2st.nn.quant.quanted_layers import QuantedConv2D, QuantedLinear
from dy2st.nn.quant.stub import QuanterStub, Stub
from dy2st.quantization.factory import QuanterFactory
from dy2st.quantization.wrapper import ObserveWrapper

DEFAULT_QAT_LAYER_MAPPINGS: dict[type[Layer], type[Layer]] = {
    Stub: QuanterStub,
    Linear: QuantedLinear,
    Conv2D: QuantedConv2D,
}
_LEAVES = (ReLU, AvgPool2D)


class SingleLayerConfig:
    """Which factories make the quanters of a layer's input and of its weight; None for none."""

    def __init__(self, activation: QuanterFactory | None, weight: QuanterFactory | None):
        self.activation, self.weight = activation, weight

    def __str__(self) -> str:
        return f"activation: {self.activation}\nweight: {self.weight}"


class QuantConfig:
    """What factories make the quanters of which layers.

    A layer has what was said of it (`add_layer_config`) or of its full name, else of its type, else of the layer that
    holds it, else what is given here for all.

    >>> from dy2st.quantization import QuantConfig
    >>> from dy2st.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    >>> print(QuantConfig(activation=quanter, weight=None).global_config)
    activation: FakeQuanterWithAbsMaxObserver(name=None,moving_rate=0.9,bit_length=8,dtype=float32)
    weight: None
    """

    def __init__(self, activation: QuanterFactory | None, weight: QuanterFactory | None):
        none = activation is None and weight is None
        self._global_config = None if none else SingleLayerConfig(activation, weight)
        self._of_names: dict[str, SingleLayerConfig] = {}
        self._of_types: dict[type[Layer], SingleLayerConfig] = {}
        self._of_layers: dict[int, tuple[Layer, SingleLayerConfig]] = {}
        self._mapping = dict(DEFAULT_QAT_LAYER_MAPPINGS)
        self._leaves: list[type[Layer]] = []
        self._model: Layer | None = None

    @property
    def global_config(self) -> SingleLayerConfig | None:
        """What holds for layers of which nothing else is said."""
        return self._global_config

    @property
    def qat_layer_mappings(self) -> dict[type[Layer], type[Layer]]:
        """Which layers take the place of which."""
        return self._mapping

    @property
    def default_qat_layer_mapping(self) -> dict[type[Layer], type[Layer]]:
        """The same, as it is at first."""
        return DEFAULT_QAT_LAYER_MAPPINGS

    @property
    def customized_leaves(self) -> list[type[Layer]]:
        """Types whose layers count as one, whatever they hold."""
        return self._leaves

    def add_layer_config(
        self, layer: Layer | Sequence[Layer], activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:  # fmt: skip
        """Say what holds for a layer, or for several."""
        layers = [layer] if isinstance(layer, Layer) else layer
        self.add_name_config([one.full_name() for one in layers], activation, weight)

    def add_name_config(
        self, layer_name: str | Sequence[str], activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:  # fmt: skip
        """Say what holds for the layer of a full name, or for several."""
        for name in [layer_name] if isinstance(layer_name, str) else layer_name:
            self._of_names[name] = SingleLayerConfig(activation, weight)

    def add_type_config(
        self, layer_type: type[Layer] | Sequence[type[Layer]], activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:  # fmt: skip
        """Say what holds for all layers of a type, or of several."""
        for one in [layer_type] if isinstance(layer_type, type) else layer_type:
            self._of_types[one] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source: type[Layer], target: type[Layer]) -> None:
        """Let layers of type `target`, made of a layer and its configuration, take the place of those of `source`."""
        for one in (source, target):
            if not isinstance(one, type) or not issubclass(one, Layer):
                raise TypeError(f"add_qat_layer_mapping takes two types of layers, not {one!r}")
        self._mapping[source] = target

    def add_customized_leaf(self, layer_type: type[Layer]) -> None:
        """Let layers of a type be looked at as one, whatever they hold."""
        self._leaves.append(layer_type)

    # ---- of a model -------------------------------------------------------------------------------------------------
    def _specify(self, model: Layer) -> None:
        """Note what holds for each layer below a model."""
        self._model = model
        above = self._config_of(model) or self._global_config
        for child in model.children():
            config = self._of_types.get(type(child), above)
            config = self._of_names.get(child.full_name(), config)
            if config is not None:
                self._of_layers[id(child)] = child, config
            self._specify(child)
        self._model = model

    def _config_of(self, layer: Layer) -> SingleLayerConfig | None:
        found = self._of_layers.get(id(layer))
        return None if found is None else found[1]

    def _quanted(self, layer: Layer) -> Layer | None:
        """Return the layer that takes the place of another; None where it stays."""
        config, target = self._config_of(layer), self._mapping.get(type(layer))
        made: Any = target
        return None if config is None or target is None else made(layer, config)

    def _observed(self, layer: Layer) -> ObserveWrapper | None:
        """Return a layer with what looks at its input; None where nothing does."""
        config, types = self._config_of(layer), (*_LEAVES, *self._leaves)
        is_leaf = type(layer) in types or not list(layer.children())
        if not is_leaf or config is None or config.activation is None:
            return None
        return ObserveWrapper(config.activation._instance(layer), layer)

    def details(self) -> str:
        """Return what holds for each layer of the model that was quantized last, as text."""
        return str(self) if self._model is None else self._lines(self._model)

    def _lines(self, layer: Layer) -> str:
        inner = [
            f"({name}): {self._lines(child)}, {self._config_of(child)}".replace("\n", "\n  ")
            for name, child in layer.named_children()
            if self._config_of(child) is not None
        ]
        return type(layer).__name__ + ("(\n  " + "\n  ".join(inner) + "\n)" if inner else "()")

    def __str__(self) -> str:
        text = f"Global config:\n{self._global_config}\n"
        for what, configs in (("type", self._of_types), ("prefix", self._of_names)):
            if configs:
                text += f"Layer {what} config:\n{configs}\n"
        return text
