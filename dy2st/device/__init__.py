"""`paddle.device`: which devices there are, and which one new tensors are made on."""

from __future__ import annotations

from dy2st.device import cuda
from dy2st.device.cuda import device_count, synchronize
from dy2st.device.streams import Event, Stream, current_stream, set_stream, stream_guard
from dy2st.missing import missing_in
from dy2st.runtime.eager.device import CPUPlace, CUDAPlace, get_device, is_compiled_with_cuda, set_device
from dy2st.runtime.eager.device import parse as _convert_to_place

StreamContext = stream_guard
get_default_device, set_default_device = get_device, set_device

__getattr__ = missing_in(__name__, "dy2st.device.cuda")

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "Event",
    "Stream",
    "_convert_to_place",
    "cuda",
    "current_stream",
    "device_count",
    "get_all_custom_device_type",
    "get_all_device_type",
    "get_available_device",
    "get_cudnn_version",
    "get_device",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_custom_device",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "set_device",
    "set_stream",
    "stream_guard",
    "synchronize",
]


def get_all_device_type() -> list[str]:
    """Return the kinds of devices that can be used: "cpu", and "gpu" where there is one."""
    return ["cpu", "gpu"] if device_count() else ["cpu"]


def get_all_custom_device_type() -> list[str]:
    """Return an empty list: dy2st runs on CPUs and CUDA devices."""
    return []


get_available_custom_device = get_all_custom_device_type


def get_available_device() -> list[str]:
    """Return the names of the devices that can be used.

    >>> import dy2st as paddle
    >>> paddle.device.get_available_device()[0]
    'cpu'
    """
    return ["cpu", *(f"gpu:{i}" for i in range(device_count()))]


def get_cudnn_version() -> int | None:
    """Return None: cuDNN is not used."""
    return None


def is_compiled_with_xpu() -> bool:
    """Return False: dy2st runs on CPUs and CUDA devices."""
    return False


def is_compiled_with_ipu() -> bool:
    """Return False: dy2st runs on CPUs and CUDA devices."""
    return False


def is_compiled_with_rocm() -> bool:
    """Return False: dy2st runs on CPUs and CUDA devices."""
    return False


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Return False: dy2st runs on CPUs and CUDA devices."""
    return False


def is_compiled_with_cinn() -> bool:
    """Return False: Programs are compiled by dy2st itself."""
    return False


def is_compiled_with_distribute() -> bool:
    """Return False: there is one process."""
    return False
