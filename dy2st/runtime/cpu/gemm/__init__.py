"""Products of matrices as LLVM functions: kernels in registers, packing, and the loops around them."""

from dy2st.runtime.cpu.gemm.matmul import matmul_kernel, scratch_kernel
from dy2st.runtime.cpu.gemm.packed import packed_elements, packed_kernel, packing_kernel
