"""Places in a model where an observer or a quanter is to stand: before a function that no layer computes."""

from __future__ import annotations

from typing import Any

from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class Stub(Layer):
    """The identity, which `QAT` and `PTQ` replace by an observer: `observer`'s, or that of the configuration.

    >>> import dy2st as paddle
    >>> paddle.nn.quant.Stub()(paddle.to_tensor([1.0])).tolist()
    [1.0]
    """

    def __init__(self, observer: Any = None):
        super().__init__()
        self._observer = observer

    def forward(self, input: Tensor) -> Tensor:
        return input


class QuanterStub(Layer):
    """What a `Stub` becomes: its observer, or that of the configuration for activations, looks at the input."""

    def __init__(self, layer: Stub, q_config: Any):
        super().__init__()
        factory = layer._observer if layer._observer is not None else q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input: Tensor) -> Tensor:
        return input if self._observer is None else self._observer(input)
