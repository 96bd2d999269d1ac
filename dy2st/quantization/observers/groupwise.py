"""A scale for each group of the inputs of an output: weights of linear layers."""

from __future__ import annotations

from dy2st.functions.core.operands import cast_to
from dy2st.nn.layer import Layer
from dy2st.quantization.base import BaseObserver, BaseQuanter
from dy2st.quantization.factory import ObserverFactory
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor


class GroupWiseWeightObserver(ObserverFactory):
    """Makes observers of weights [in, out] whose scales are [in / group_size, out]."""

    def __init__(self, quant_bits: int = 8, group_size: int = 128):
        super().__init__(quant_bits=quant_bits, group_size=group_size)

    def _get_class(self) -> type[BaseQuanter]:
        return GroupWiseWeightObserverLayer


class GroupWiseWeightObserverLayer(BaseObserver):
    """Keeps the largest magnitudes of the groups of a weight; see `GroupWiseWeightObserver`."""

    def __init__(self, layer: Layer | None, quant_bits: int = 8, group_size: int = 128):
        super().__init__()
        if group_size not in (64, 128):
            raise ValueError(f"GroupWiseWeightObserver: a group has 64 or 128 elements, not {group_size}")
        self._quant_bits, self.group_size = quant_bits, group_size
        self._max: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 2 or input.shape[0] % self.group_size:
            raise ValueError(f"GroupWiseWeightObserver: {input.shape} has no groups of {self.group_size} inputs")
        groups, outputs = input.shape[0] // self.group_size, input.shape[1]
        with no_grad():
            found = input.reshape([groups, self.group_size, outputs]).abs().max(1)
            self._max = found + cast_to(found == 0, found.dtype) * 1e-8
        return input

    def cal_thresholds(self) -> None:
        """Do nothing: the scales are known at any time."""

    def scales(self) -> Tensor | None:
        return self._max

    def zero_points(self) -> None:
        return None

    def quant_axis(self) -> int:
        return -1

    def bit_length(self) -> int:
        return self._quant_bits
