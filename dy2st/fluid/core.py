"""The part of 1.x's `fluid.core` that scripts reach for: places, and whether CUDA is there."""

from dy2st.runtime.eager.device import CPUPlace, CUDAPlace, is_compiled_with_cuda
from dy2st.runtime.eager.tensor import Tensor as VarBase

__all__ = ["CPUPlace", "CUDAPlace", "VarBase", "is_compiled_with_cuda"]
