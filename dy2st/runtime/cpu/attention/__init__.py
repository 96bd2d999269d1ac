"""Attention as LLVM functions: weights live in cache, a block of queries at a time."""

from dy2st.runtime.cpu.attention.gradient import attention_gradient_kernel, attention_gradient_scratch
from dy2st.runtime.cpu.attention.kernel import attention_kernel, attention_scratch
from dy2st.runtime.cpu.attention.row import FIELDS
