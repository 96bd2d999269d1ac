"""Scales from the distribution of what passed: a few large numbers do not spread the steps of all others."""

from __future__ import annotations

import numpy as np

from dy2st.functions.core.operands import constant
from dy2st.nn.layer import Layer
from dy2st.quantization.base import BaseObserver, BaseQuanter
from dy2st.quantization.factory import ObserverFactory
from dy2st.quantization.thresholds import PERCENT, Histogram
from dy2st.runtime.eager.tensor import Tensor


class HistObserver(ObserverFactory):
    """Makes observers whose scale so much of all magnitudes is below."""

    def __init__(self, quant_bits: int = 8, percent: float = PERCENT):
        super().__init__(quant_bits=quant_bits, percent=percent)

    def _get_class(self) -> type[BaseQuanter]:
        return HistObserverLayer


class KLObserver(ObserverFactory):
    """Makes observers whose scale keeps the distribution of rounded numbers nearest to that of the numbers."""

    def __init__(self, quant_bits: int = 8):
        super().__init__(quant_bits=quant_bits)

    def _get_class(self) -> type[BaseQuanter]:
        return KLObserverLayer


class _HistogramObserver(BaseObserver):
    def __init__(self, layer: Layer | None, quant_bits: int = 8):
        super().__init__()
        self._quant_bits, self._histogram = quant_bits, Histogram()

    def forward(self, input: Tensor) -> Tensor:
        self._histogram.add(input.numpy())
        return input

    def _threshold(self) -> float:
        raise NotImplementedError

    def cal_thresholds(self) -> None:
        """Do nothing: the scale is computed when it is asked for."""

    def scales(self) -> Tensor | None:
        seen = self._histogram.counts.sum() > 0
        return constant(np.asarray(self._threshold(), np.float32)) if seen else None

    def zero_points(self) -> None:
        return None

    def quant_axis(self) -> int:
        return -1

    def bit_length(self) -> int:
        return self._quant_bits


class HistObserverLayer(_HistogramObserver):
    """Keeps a histogram of what passes; see `HistObserver`."""

    def __init__(self, layer: Layer | None, quant_bits: int = 8, percent: float = PERCENT):
        super().__init__(layer, quant_bits)
        self._percent = percent

    def _threshold(self) -> float:
        return self._histogram.percentile(self._percent)


class KLObserverLayer(_HistogramObserver):
    """Keeps a histogram of what passes; see `KLObserver`."""

    def _threshold(self) -> float:
        return self._histogram.kl(self._quant_bits)
