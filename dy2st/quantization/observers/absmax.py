"""The largest magnitude of all that passed."""

from __future__ import annotations

from dy2st.functions.math.reduction import max as largest
from dy2st.nn.layer import Layer
from dy2st.quantization.base import BaseObserver, BaseQuanter
from dy2st.quantization.factory import ObserverFactory
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor


class AbsmaxObserver(ObserverFactory):
    """Makes observers whose scale is the largest magnitude that they saw."""

    def __init__(self, quant_bits: int = 8):
        super().__init__(quant_bits=quant_bits)

    def _get_class(self) -> type[BaseQuanter]:
        return AbsmaxObserverLayer


class AbsmaxObserverLayer(BaseObserver):
    """Keeps the largest magnitude of what passes; see `AbsmaxObserver`."""

    def __init__(self, layer: Layer | None, quant_bits: int = 8):
        super().__init__()
        self._quant_bits = quant_bits
        self._max: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        with no_grad():
            now = largest(input.abs())
            self._max = now if self._max is None else self._max.maximum(now)
        return input

    def cal_thresholds(self) -> None:
        """Do nothing: the scale is known at any time."""

    def scales(self) -> Tensor | None:
        return self._max

    def zero_points(self) -> None:
        return None

    def quant_axis(self) -> int:
        return -1

    def bit_length(self) -> int:
        return self._quant_bits
