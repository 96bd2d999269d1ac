"""`paddle.device.cuda`: CUDA devices, by CuPy where it is installed; else there are none, which hold nothing."""

from __future__ import annotations

from typing import Any

from dy2st.missing import missing_in
from dy2st.runtime.eager import device as places
from dy2st.runtime.eager import rng

__getattr__ = missing_in(__name__, "dy2st.device.streams")


def device_count() -> int:
    """Return how many CUDA devices can be used."""
    return int(places.cuda().cuda.runtime.getDeviceCount()) if places.is_compiled_with_cuda() else 0


def synchronize(device: Any = None) -> None:
    """Wait until a CUDA device (the current one by default) has done what it was told; the CPU never lags behind."""
    place = _place(device)
    if place.kind == "gpu":
        places.cuda(place.index).cuda.Device(place.index).synchronize()


def empty_cache() -> None:
    """Give back the memory of CUDA devices that is kept for later tensors; without a device there is none.

    >>> empty_cache()
    """
    if places.is_compiled_with_cuda():
        places.cuda().get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Return how many bytes the tensors of a CUDA device take; 0 on the CPU."""
    place = _place(device)
    return int(places.cuda(place.index).get_default_memory_pool().used_bytes()) if place.kind == "gpu" else 0


def memory_reserved(device: Any = None) -> int:
    """Return how many bytes are held for the tensors of a CUDA device, now or later; 0 on the CPU."""
    place = _place(device)
    return int(places.cuda(place.index).get_default_memory_pool().total_bytes()) if place.kind == "gpu" else 0


max_memory_allocated = max_memory_reserved = memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Do nothing: the most that was held is what is held, until `empty_cache` gives it back."""


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def is_available() -> bool:
    """Return whether there is a CUDA device."""
    return device_count() > 0


def get_rng_state(device: Any = None) -> Any:
    """Return the state of the random numbers, which are the same on all devices."""
    return rng.get_rng_state()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Go back to a state of the random numbers."""
    rng.set_rng_state(new_state)


manual_seed = manual_seed_all = rng.seed


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """Return what CUDA says of a device; RuntimeError, or MissingExtraError, where there is none."""
    index = device if isinstance(device, int) else places.parse("gpu" if device is None else device).index
    return dict(places.cuda(index).cuda.runtime.getDeviceProperties(index))


def get_device_name(device: Any = None) -> str:
    """Return the name of a CUDA device; RuntimeError, or MissingExtraError, where there is none."""
    return get_device_properties(device)["name"].decode()


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return major and minor number of what a CUDA device can compute; an error where there is none."""
    found = get_device_properties(device)
    return found["major"], found["minor"]


def _place(device: Any) -> places.Place:
    if isinstance(device, int):
        return places.CUDAPlace(device)
    return places.parse(places.get_device() if device is None else device)
