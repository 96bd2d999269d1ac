"""What convolutions and their gradients have in common, beside products of matrices."""

from __future__ import annotations

import functools

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.conv.common.im2col import gather
from dy2st.runtime.backends.cpu.conv.direct.forward import direct
from dy2st.runtime.backends.cpu.conv.direct.output_vectors import permutes
from dy2st.runtime.backends.cpu.conv.direct.winograd import winograd
from dy2st.runtime.backends.cpu.conv.matmul.shifted_gemm import shifted_gemm
from dy2st.runtime.backends.cpu.gemm import matmul_kernel
from dy2st.runtime.backends.cpu.gemm.tiling import tile
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition


@functools.cache
def windows_in_common(dtype: str, target: Target) -> tuple[tuple[Definition, ...], ...]:
    """Return the modules that convolutions take from, those that others call first."""
    t = tile(dtype, target)
    product = matmul_kernel(dtype, False, False, target)
    return (product,), (gather(t),), *(((direct(t),), (winograd(t),)) if permutes(target) else ((shifted_gemm(t),),))
