"""Rounding by a moving average of the largest magnitudes."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.assigning import set_value
from dy2st.functions.core.operands import cast_to
from dy2st.functions.math.math import round_half_away
from dy2st.functions.shape.creation import full
from dy2st.nn.layer import Layer
from dy2st.quantization.base import BaseQuanter
from dy2st.quantization.factory import QuanterFactory
from dy2st.runtime.eager.tensor import Tensor


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Makes quanters that round to steps of scale / (2 ** (bit_length - 1) - 1).

    While the model trains, state = moving_rate * state + 1, accum = moving_rate * accum + max|x| and scale = accum /
    state; in evaluation mode the scale stays. What is above the scale is rounded to it. The gradient is that of the
    identity, everywhere.
    """

    def __init__(self, moving_rate: float = 0.9, bit_length: int = 8, dtype: Any = "float32", name: str | None = None):
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)

    def _get_class(self) -> type[BaseQuanter]:
        return FakeQuanterWithAbsMaxObserverLayer


class FakeQuanterWithAbsMaxObserverLayer(BaseQuanter):
    """Rounds what passes; see `FakeQuanterWithAbsMaxObserver`. Its state are three buffers of one element."""

    def __init__(
        self, layer: Layer | None, name: str | None = None, moving_rate: float = 0.9, bit_length: int = 8,
        dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__()
        self._moving_rate, self._bit_length = moving_rate, bit_length
        for what, start in (("_scale", 0.001), ("_state", 1.0), ("_accum", 1.0)):
            self.register_buffer(what, full([1], start, dtype))

    def forward(self, input: Tensor) -> Tensor:
        if self.training:
            largest = cast_to(input.detach().abs().max(), self._scale.dtype)
            set_value(self._state, self._state * self._moving_rate + 1)
            set_value(self._accum, self._accum * self._moving_rate + largest)
            set_value(self._scale, self._accum / self._state)
        x, scale = input.detach(), cast_to(self._scale, input.dtype)
        most = 2 ** (self._bit_length - 1) - 1
        clipped = x.minimum(scale).maximum(-scale)
        return round_half_away(clipped * (most / scale)) * (scale / most) + (input - x)

    def scales(self) -> Tensor:
        return self._scale

    def zero_points(self) -> None:
        return None

    def quant_axis(self) -> int:
        return -1

    def bit_length(self) -> int:
        return self._bit_length
