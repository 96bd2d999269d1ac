"""Weights as integers: functions on them, and what `paddle.quantization` puts into a model (Paddle's `nn.quant`)."""

from dy2st.nn.quant.stub import QuanterStub, Stub
from dy2st.nn.quant.weight_only import llm_int8_linear, weight_dequantize, weight_only_linear, weight_quantize
from dy2st.nn.quant.weight_only_layer import WeightOnlyLinear, quantize_weight

__all__ = [
    "QuanterStub",
    "Stub",
    "WeightOnlyLinear",
    "llm_int8_linear",
    "quantize_weight",
    "weight_dequantize",
    "weight_only_linear",
    "weight_quantize",
]
