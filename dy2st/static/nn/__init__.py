"""Control flow and layers as functions, for Programs that are built by hand."""

from dy2st.missing import missing_in
from dy2st.static.nn.control_flow import case, cond, switch_case, while_loop
from dy2st.static.nn.derived import spectral_norm, static_pylayer
from dy2st.static.nn.layers import (
    batch_norm,
    bilinear_tensor_product,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    embedding,
    fc,
    group_norm,
    instance_norm,
    layer_norm,
    prelu,
)
from dy2st.static.nn.ranking import row_conv, sparse_embedding
from dy2st.static.py_func import py_func

__getattr__ = missing_in(__name__)

__all__ = [
    "batch_norm",
    "bilinear_tensor_product",
    "case",
    "cond",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "embedding",
    "fc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "prelu",
    "py_func",
    "row_conv",
    "sparse_embedding",
    "spectral_norm",
    "static_pylayer",
    "switch_case",
    "while_loop",
]
