"""What each operator does, a file for each family."""

from dy2st.onnx.reading.rules import control, elementwise, indexing, layers, recurrent, reductions, resizing, shapes
from dy2st.onnx.reading.runner import RULES

__all__ = ["RULES"]
