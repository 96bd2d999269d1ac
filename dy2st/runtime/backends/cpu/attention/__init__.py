"""Attention as LLVM functions: weights live in cache, a block of queries at a time. Their writers load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.runtime.backends.cpu.attention.forward import attention_kernel, attention_scratch
    from dy2st.runtime.backends.cpu.attention.gradient import attention_gradient_kernel, attention_gradient_scratch
    from dy2st.runtime.backends.cpu.attention.mask_gradient import mask_gradient_kernel, mask_gradient_scratch
    from dy2st.runtime.backends.cpu.attention.shape_descriptor import FIELDS

__getattr__ = late_names(
    "dy2st.runtime.backends.cpu.attention",
    {
        "gradient": "attention_gradient_kernel attention_gradient_scratch",
        "forward": "attention_kernel attention_scratch",
        "mask_gradient": "mask_gradient_kernel mask_gradient_scratch",
        "shape_descriptor": "FIELDS",
    },
)
