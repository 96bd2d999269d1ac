"""Convolutions and pooling as LLVM functions. Their writers load on first use: few Programs have windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.runtime.cpu.conv.convolution import (
        convolution_kernel,
        convolution_scratch,
        input_gradient_kernel,
        weight_gradient_kernel,
    )
    from dy2st.runtime.cpu.conv.in_common import windows_in_common
    from dy2st.runtime.cpu.conv.pooling import (
        max_pool_kernel,
        max_values_kernel,
        mean_pool_gradient_kernel,
        mean_pool_kernel,
    )
    from dy2st.runtime.cpu.conv.shape import FIELDS, shape_row

__getattr__ = late_names(
    "dy2st.runtime.cpu.conv",
    {
        "convolution": "convolution_kernel convolution_scratch input_gradient_kernel weight_gradient_kernel",
        "in_common": "windows_in_common",
        "pooling": "max_pool_kernel max_values_kernel mean_pool_gradient_kernel mean_pool_kernel",
        "shape": "FIELDS shape_row",
    },
)
