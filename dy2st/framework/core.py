"""`paddle.base.core`: places, kinds of variables by number-free names, and what this build can do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dy2st import dtypes
from dy2st.amp import is_bfloat16_supported, is_float16_supported
from dy2st.device import (
    device_count,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_custom_device,
    is_compiled_with_ipu,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
)
from dy2st.functions.core.defaults import get_flags
from dy2st.missing import missing_in
from dy2st.runtime.eager import rng
from dy2st.runtime.eager.device import CPUPlace, CUDAPlace, Place
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.scope import Scope

__getattr__ = missing_in(__name__)

LoDTensor = DenseTensor = VarBase = Tensor
eager = SimpleNamespace(Tensor=Tensor)
DataType = SimpleNamespace(**{t.name.upper(): t for t in dtypes.ALL})


class VarDesc:
    """Kinds of variables: `VarDesc.VarType.FP32` is the dtype itself, kinds of containers are their names."""

    VarType = SimpleNamespace(
        BOOL=dtypes.bool_, UINT8=dtypes.uint8, INT8=dtypes.int8, INT16=dtypes.int16, INT32=dtypes.int32,
        INT64=dtypes.int64, FP16=dtypes.float16, FP32=dtypes.float32, FP64=dtypes.float64,
        COMPLEX64=dtypes.complex64, COMPLEX128=dtypes.complex128, LOD_TENSOR="lod_tensor", DENSE_TENSOR="dense_tensor",
        SELECTED_ROWS="selected_rows", LOD_TENSOR_ARRAY="lod_tensor_array", DENSE_TENSOR_ARRAY="dense_tensor_array",
        STRINGS="strings", RAW="raw",
    )  # fmt: skip


class Generator(rng.Generator):
    """A generator of its own, with a seed of the system's; one for all devices.

    >>> Generator().manual_seed(3).initial_seed()
    3
    """

    def __init__(self, device: Any = None):
        super().__init__()

    def initial_seed(self) -> int:
        """Return the seed."""
        return self.seed


class EOFException(Exception):
    """What a reader of Paddle 1.x raises at its end; readers here end as iterators do."""


def is_compiled_with_mkldnn() -> bool:
    """Return False: kernels are dy2st's own."""
    return False


def set_prim_eager_enabled(*what: Any) -> None:
    """Do nothing: derivatives of any order are there without a switch."""


_set_prim_all_enabled = _set_prim_forward_enabled = _set_prim_backward_enabled = set_prim_eager_enabled
_set_prim_backward_blacklist = set_prim_eager_enabled


def default_cpu_generator() -> Any:
    """Return the generator that random tensors draw from."""
    return default_generator()


default_cuda_generator = default_cpu_generator


def get_cuda_device_count() -> int:
    """Return how many CUDA devices can be used."""
    return device_count()


def globals() -> dict[str, Any]:
    """Return the flags by name, as `paddle.get_flags` has them."""
    return _Flags()


class _Flags(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return get_flags(name)[name]


__all__ = [
    "CPUPlace", "CUDAPlace", "DataType", "DenseTensor", "EOFException", "Generator", "LoDTensor", "Place", "Scope",
    "Tensor", "VarBase", "VarDesc", "default_generator", "eager", "get_cuda_device_count", "globals",
    "is_bfloat16_supported", "is_compiled_with_cinn", "is_compiled_with_cuda", "is_compiled_with_custom_device",
    "is_compiled_with_ipu", "is_compiled_with_rocm", "is_compiled_with_xpu", "is_float16_supported",
]  # fmt: skip
