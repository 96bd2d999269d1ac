"""Control flow and layers as functions, for Programs that are built by hand."""

from dy2st.missing import missing_in
from dy2st.static.nn.control_flow import case, cond, switch_case, while_loop
from dy2st.static.nn.layers import batch_norm, conv2d, conv2d_transpose, embedding, fc, layer_norm, prelu

__getattr__ = missing_in(__name__)

__all__ = [
    "batch_norm",
    "case",
    "cond",
    "conv2d",
    "conv2d_transpose",
    "embedding",
    "fc",
    "layer_norm",
    "prelu",
    "switch_case",
    "while_loop",
]
