"""Training with rounded numbers (QAT), rounding a trained model (PTQ), and the model that is deployed (`convert`).

B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference" (2018).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod

from dy2st.nn.layer import Layer
from dy2st.nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from dy2st.quantization.base import BaseQuanter
from dy2st.quantization.config import QuantConfig


class Quantization(ABC):
    """What both have in common."""

    def __init__(self, config: QuantConfig):
        self._config = copy.deepcopy(config)

    @abstractmethod
    def quantize(self, model: Layer, inplace: bool = False) -> Layer:
        """Return the model with observers or quanters in it."""

    def convert(self, model: Layer, inplace: bool = False, remain_weight: bool = False) -> Layer:
        """Return the model that is deployed: integers for weights, known scales where quanters were.

        With `remain_weight` weights stay floats, which are rounded and multiplied back in every call. The converted
        model can be saved by `paddle.jit.save`.
        """
        found = model if inplace else copy.deepcopy(model)
        for name, child in list(found.named_children()):
            if isinstance(child, ConvertibleQuantedLayer):
                _convert(child, remain_weight)
            elif isinstance(child, BaseQuanter):
                found._sub_layers[name] = LinearQuanterDequanter.from_quanter(child)
            else:
                self.convert(child, inplace=True, remain_weight=remain_weight)
        return found

    def _prepared(self, model: Layer) -> Layer:
        """Put quanted layers in the place of others, and observers in front of the rest."""
        self._config._specify(model)
        self._replace(model)
        return model

    def _replace(self, model: Layer) -> None:
        for name, child in list(model.named_children()):
            made = self._config._quanted(child)
            made = self._config._observed(child) if made is None else made
            if made is None:
                self._replace(child)
            else:
                model._sub_layers[name] = made

    def __repr__(self) -> str:
        return self._config.details()


class QAT(Quantization):
    """Training with rounded numbers: weights and inputs of layers pass through quanters, gradients straight through.

    >>> import dy2st as paddle
    >>> from dy2st.quantization import QAT, QuantConfig
    >>> from dy2st.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    >>> qat = QAT(QuantConfig(activation=quanter, weight=quanter))
    >>> model = qat.quantize(paddle.nn.Sequential(paddle.nn.Linear(4, 2)))
    >>> type(model[0]).__name__, model(paddle.ones([3, 4])).shape
    ('QuantedLinear', [3, 2])
    >>> deployed = qat.convert(model.eval())
    >>> deployed[0].quant_weight.dtype.name
    'int8'
    """

    def quantize(self, model: Layer, inplace: bool = False) -> Layer:
        """Return the model (a copy, unless `inplace`) to be trained further; ValueError where it is in eval mode."""
        if not model.training:
            raise ValueError("QAT.quantize takes a model in training mode: call model.train() first")
        return self._prepared(model if inplace else copy.deepcopy(model))


class PTQ(Quantization):
    """Rounding a trained model: observers look at what passes when it runs on calibration data, then it is converted.

    >>> import dy2st as paddle
    >>> from dy2st.quantization import PTQ, QuantConfig
    >>> from dy2st.quantization.observers import AbsmaxObserver
    >>> ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    >>> model = ptq.quantize(paddle.nn.Sequential(paddle.nn.Linear(4, 2)).eval())
    >>> _ = model(paddle.ones([3, 4]))
    >>> ptq.convert(model)[0].quant_weight.shape
    [2, 4]
    """

    def quantize(self, model: Layer, inplace: bool = False) -> Layer:
        """Return the model (a copy, unless `inplace`) to be calibrated; ValueError where it is in training mode."""
        if model.training:
            raise ValueError("PTQ.quantize takes a model in evaluation mode: call model.eval() first")
        return self._prepared(model if inplace else copy.deepcopy(model))


def _convert(layer: ConvertibleQuantedLayer, remain_weight: bool) -> None:
    """Convert a layer whose quanters have seen something, and which was not converted before."""
    quanters = [getattr(layer, name, None) for _, name in layer.weights_to_quanters()]
    if not layer.converted and all(q is not None and q.scales() is not None for q in quanters):
        layer._convert(remain_weight)
