"""Convolutions and pooling as LLVM functions."""

from dy2st.runtime.cpu.conv.convolution import (
    convolution_kernel,
    convolution_scratch,
    input_gradient_kernel,
    weight_gradient_kernel,
)
from dy2st.runtime.cpu.conv.pooling import (
    max_pool_kernel,
    max_values_kernel,
    mean_pool_gradient_kernel,
    mean_pool_kernel,
)
from dy2st.runtime.cpu.conv.shape import FIELDS, shape_row
