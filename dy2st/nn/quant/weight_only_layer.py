"""A linear layer whose weight is integers, and a model with such layers in the place of its own."""

from __future__ import annotations

import copy

from dy2st.nn.layer import Layer
from dy2st.nn.layers.linear import Linear
from dy2st.nn.quant.format import frozen
from dy2st.nn.quant.weight_only import weight_only_linear, weight_quantize
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor


class WeightOnlyLinear(Layer):
    """A `Linear` whose weight is int8 or int4: `quant_weight` and `weight_scale`, which no step trains."""

    def __init__(self, layer: Linear, algo: str = "weight_only_int8", group_size: int = -1):
        super().__init__()
        self.in_features, self.out_features, self.group_size = layer.in_features, layer.out_features, group_size
        self.weight_dtype = algo.removeprefix("weight_only_")
        with no_grad():
            weight, scale = weight_quantize(layer.weight, algo, group_size=group_size)
        self.quant_weight, self.weight_scale = frozen(weight), frozen(scale)
        self.bias = layer.bias

    def forward(self, input: Tensor) -> Tensor:
        return weight_only_linear(
            input, self.quant_weight, self.bias, self.weight_scale, self.weight_dtype, group_size=self.group_size
        )

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, weight_dtype={self.weight_dtype}"


def quantize_weight(
    model: Layer, algo: str = "weight_only_int8", group_size: int = -1, inplace: bool = False
) -> Layer:  # fmt: skip
    """Return a model whose `Linear` layers have weights of 8 bits, or of 4 bits ("weight_only_int4").

    A layer whose extents do not divide into groups, or into pairs of outputs for 4 bits, stays as it is. The model
    itself is copied first, unless `inplace`.

    >>> import dy2st as paddle
    >>> model = paddle.nn.Sequential(paddle.nn.Linear(4, 2), paddle.nn.ReLU())
    >>> paddle.nn.quant.quantize_weight(model)[0].quant_weight.dtype.name
    'int8'
    """
    if algo not in ("weight_only_int8", "weight_only_int4"):
        raise ValueError(f"quantize_weight: algo is 'weight_only_int8' or 'weight_only_int4', not {algo!r}")
    if isinstance(model, Linear):
        return WeightOnlyLinear(model, algo, group_size)
    found = model if inplace else copy.deepcopy(model)
    for layer in found.sublayers(include_self=True):
        for name, below in list(layer.named_children()):
            if type(below) is Linear and _divides(below, algo, group_size):
                setattr(layer, name, WeightOnlyLinear(below, algo, group_size))
    return found


def _divides(layer: Linear, algo: str, group_size: int) -> bool:
    pairs = algo != "weight_only_int4" or layer.out_features % 2 == 0
    return pairs and (group_size == -1 or layer.in_features % group_size == 0)
