"""Layers that compute with weights and inputs rounded to integers: what `QAT` and `PTQ` put in the place of others."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, op
from dy2st.nn.functional.affine import linear
from dy2st.nn.layers.conv import Conv2D, convolved
from dy2st.nn.layers.linear import Linear
from dy2st.nn.quant.format import ConvertibleQuantedLayer, LinearQuanter, frozen
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_PRODUCT = op("quantized_matmul")


class _Quanted(ConvertibleQuantedLayer):
    """A layer with a quanter for its weight and one for its input, as far as the configuration has them."""

    def __init__(self, layer: Any, q_config: Any):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.weight_quanter = None if q_config.weight is None else q_config.weight._instance(layer)
        self.activation_quanter = None if q_config.activation is None else q_config.activation._instance(layer)

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        return [("weight", "weight_quanter")]

    def activation_quanters(self) -> list[str]:
        return ["activation_quanter"]

    def _input(self, x: Tensor) -> Tensor:
        return x if self.activation_quanter is None else self.activation_quanter(x)

    def _weight(self) -> Tensor:
        return self.weight if self.weight_quanter is None else self.weight_quanter(self.weight)


class QuantedLinear(_Quanted):
    """A `Linear` on rounded numbers; converted, it has `quant_weight`, int8 [out, in], and `quant_scale`."""

    def __init__(self, layer: Linear, q_config: Any):
        super().__init__(layer, q_config)
        self.name, self._group = layer.name, 0

    def forward(self, input: Tensor) -> Tensor:
        x = self._input(input)
        if "quant_weight" not in self._parameters:
            return linear(x, self._weight(), self.bias, self.name)
        flat = x.reshape([-1, x.shape[-1]])
        scale = cast_to(self.quant_scale, x.dtype)
        out = apply(_PRODUCT, flat, self.quant_weight, scale, bits=8, group=self._group)
        out = out.reshape([*x.shape[:-1], out.shape[-1]])
        return out if self.bias is None else out + self.bias

    def _store(self, weight: str, name: str, quanter: Any) -> None:
        """Keep the integers row by row, as the kernel of products reads them, with a scale for each row."""
        rounding = LinearQuanter.from_quanter(quanter)
        inputs, outputs = self.weight.shape
        integers = cast_to(rounding(self.weight), dtypes.int8).transpose([1, 0]).clone()
        scale = rounding._scales / rounding._most
        if scale.ndim == 2:
            self._group = inputs // scale.shape[0]
        else:
            scale = scale.reshape([-1]).expand([outputs]).clone()
        del self._parameters[weight]
        self.quant_weight, self.quant_scale = frozen(integers), frozen(scale)
        setattr(self, name, None)


class QuantedConv2D(_Quanted):
    """A `Conv2D` on rounded numbers; converted, its weight is int8."""

    def __init__(self, layer: Conv2D, q_config: Any):
        super().__init__(layer, q_config)
        names = ("_stride", "_padding", "_padding_mode", "_dilation", "_groups", "_data_format", "_kernel_size", "rank")
        for name in names:
            setattr(self, name, getattr(layer, name))

    def forward(self, input: Tensor) -> Tensor:
        return convolved(self, self._input(input), self._weight())
