"""Convolutions and pooling as LLVM functions. Their writers load on first use: few Programs have windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.runtime.backends.cpu.conv.common.shape_descriptor import FIELDS, shape_row
    from dy2st.runtime.backends.cpu.conv.pooling import (
        max_pool_kernel,
        max_values_kernel,
        mean_pool_gradient_kernel,
        mean_pool_kernel,
    )
    from dy2st.runtime.backends.cpu.conv.select_algorithm import (
        convolution_kernel,
        convolution_scratch,
        input_gradient_kernel,
        weight_gradient_kernel,
    )
    from dy2st.runtime.backends.cpu.conv.shared_choices import windows_in_common

__getattr__ = late_names(
    "dy2st.runtime.backends.cpu.conv",
    {
        "select_algorithm": "convolution_kernel convolution_scratch input_gradient_kernel weight_gradient_kernel",
        "shared_choices": "windows_in_common",
        "pooling": "max_pool_kernel max_values_kernel mean_pool_gradient_kernel mean_pool_kernel",
        "common.shape_descriptor": "FIELDS shape_row",
    },
)
