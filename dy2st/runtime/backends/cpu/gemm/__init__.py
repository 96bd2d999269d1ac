"""Products of matrices as LLVM functions: kernels in registers, packing, and the loops around them.

Their writers load on first use: many Programs have no products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.runtime.backends.cpu.gemm.matmul import matmul_kernel, scratch_kernel
    from dy2st.runtime.backends.cpu.gemm.prepacked import packed_elements, packed_kernel, packing_kernel
    from dy2st.runtime.backends.cpu.gemm.quantized import quantized_kernel, quantized_scratch

__getattr__ = late_names(
    "dy2st.runtime.backends.cpu.gemm",
    {
        "matmul": "matmul_kernel scratch_kernel",
        "prepacked": "packed_elements packed_kernel packing_kernel",
        "quantized": "quantized_kernel quantized_scratch",
    },
)
