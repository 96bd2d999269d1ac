"""Products of matrices as LLVM functions: kernels in registers, packing, and the loops around them."""

from dy2st.runtime.cpu.gemm.matmul import matmul_kernel, packed_kernel, packing_kernel, scratch_kernel
