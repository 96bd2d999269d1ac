"""Models with integers in the place of floats (Paddle's `quantization`): trained so, or rounded afterwards.

`QAT` and `PTQ` work on Layers by a `QuantConfig`; `quantize_program` on a saved model, without its class.
"""

from dy2st.quantization.base import BaseObserver, BaseQuanter
from dy2st.quantization.config import QuantConfig, SingleLayerConfig
from dy2st.quantization.factory import ObserverFactory, QuanterFactory, quanter
from dy2st.quantization.programs import quantize_program
from dy2st.quantization.quantize import PTQ, QAT
from dy2st.quantization.wrapper import ObserveWrapper

__all__ = [
    "PTQ",
    "QAT",
    "BaseObserver",
    "BaseQuanter",
    "ObserveWrapper",
    "ObserverFactory",
    "QuantConfig",
    "QuanterFactory",
    "SingleLayerConfig",
    "quanter",
    "quantize_program",
]
