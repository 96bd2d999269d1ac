"""Where and how a tensor lies in memory: devices, dtypes moved to, order, addresses."""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core import assigning
from dy2st.functions.core.operands import cast_to
from dy2st.functions.gradients import register_hook
from dy2st.ir.context import current
from dy2st.runtime.eager import device as places
from dy2st.runtime.eager.tensor import Tensor


def to(x: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """Return x on another device, in another dtype, or both: `x.to("gpu")`, `x.to("float64")`, `x.to(y)`."""
    device, dtype = keywords.pop("device", None), keywords.pop("dtype", None)
    keywords.pop("blocking", None)
    keywords.pop("copy", None)
    if keywords:
        raise TypeError(f"to() does not know {', '.join(keywords)}")
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.place, arg.dtype
        elif isinstance(arg, bool) or arg is None:
            continue
        elif isinstance(arg, places.Place) or (
            isinstance(arg, str) and arg.partition(":")[0] in ("cpu", "gpu", "cuda")
        ):
            device = arg
        else:
            dtype = arg
    if device is not None:
        x = _moved(x, places.parse(device))
    return x if dtype is None else cast_to(x, as_dtype(dtype))


def to_device(x: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return x on another device, as the array API standard names this; `stream` must be None."""
    if stream is not None:
        raise ValueError("to_device: streams are not chosen here, stream must be None")
    return _moved(x, places.parse(device))


def cpu(x: Tensor) -> Tensor:
    """Return x on the CPU."""
    return _moved(x, places.CPU)


def cuda(x: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """Return x on a CUDA device."""
    return _moved(x, places.CUDAPlace(device_id or 0))


def _moved(x: Tensor, place: places.Place) -> Tensor:
    """Return x on a place, itself when it is there; its gradient comes back to where x is."""
    if current().trace is not None or x.place == place:
        return x
    here, start = x.place, assigning.clone(x)
    made = assigning.clone(start)
    made.payload = places.move(x.array(), place)
    if not start.stop_gradient:
        register_hook(start, lambda gradient: _moved(gradient, here))
    return made


def pin_memory(x: Tensor, blocking: bool = True) -> Tensor:
    """Return x; memory is not pinned."""
    return x


def contiguous(x: Tensor) -> Tensor:
    """Return x with its elements in row-major order in memory."""
    return x if current().trace is not None or x.array().flags.c_contiguous else assigning.clone(x)


def is_contiguous(x: Tensor) -> bool:
    """Return whether the elements lie in row-major order."""
    return bool(x.array("its layout").flags.c_contiguous)


def element_size(x: Tensor) -> int:
    """Return the size of an element in bytes."""
    return x.dtype.itemsize


def data_ptr(x: Tensor) -> int:
    """Return the address of the first element."""
    array = x.array("its address")
    return int(array.__array_interface__["data"][0] if hasattr(array, "__array_interface__") else array.data.ptr)


def get_strides(x: Tensor) -> list[int]:
    """Return how many elements lie between neighbours along each axis."""
    array = x.array("its strides")
    return [s // array.itemsize for s in array.strides]
