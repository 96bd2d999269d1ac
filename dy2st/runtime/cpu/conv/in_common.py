"""What convolutions and their gradients have in common, beside products of matrices."""

from __future__ import annotations

import functools

from dy2st.runtime.cpu.conv.columns import gather
from dy2st.runtime.cpu.conv.direct import direct
from dy2st.runtime.cpu.conv.places import permutes
from dy2st.runtime.cpu.conv.sliding import sliding
from dy2st.runtime.cpu.conv.winograd import winograd
from dy2st.runtime.cpu.gemm import matmul_kernel
from dy2st.runtime.cpu.gemm.tile import tile
from dy2st.runtime.cpu.machine_code.target import Target
from dy2st.runtime.cpu.text.definition import Definition


@functools.cache
def windows_in_common(dtype: str, target: Target) -> tuple[tuple[Definition, ...], ...]:
    """Return the modules that convolutions take from, those that others call first."""
    t = tile(dtype, target)
    product = matmul_kernel(dtype, False, False, target)
    return (product,), (gather(t),), *(((direct(t),), (winograd(t),)) if permutes(target) else ((sliding(t),),))
