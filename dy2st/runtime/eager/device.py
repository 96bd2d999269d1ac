"""Where tensors live: the CPU (NumPy) or a CUDA device (CuPy)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from dy2st import config
from dy2st.errors import MissingExtraError
from dy2st.ir.context import current
from dy2st.ops.core.bundle import Bundle


class Place:
    """A device, as Paddle names it: `Place(cpu)` or `Place(gpu:0)`."""

    __slots__ = ("index", "kind")

    def __init__(self, kind: str = "cpu", index: int = 0):
        self.kind, self.index = kind, index

    def __repr__(self) -> str:
        return "Place(cpu)" if self.kind == "cpu" else f"Place(gpu:{self.index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))

    def is_cpu_place(self) -> bool:
        """Return whether this is the CPU."""
        return self.kind == "cpu"

    def is_gpu_place(self) -> bool:
        """Return whether this is a CUDA device."""
        return self.kind == "gpu"

    def get_device_id(self) -> int:
        """Return the number of the device."""
        return self.index


class CPUPlace(Place):
    """The CPU."""

    def __init__(self) -> None:
        super().__init__("cpu")


class CUDAPlace(Place):
    """A CUDA device by number; MissingExtraError or RuntimeError at once when it cannot be used."""

    def __init__(self, id: int = 0):
        super().__init__("gpu", id)
        cuda(id)


CPU = Place("cpu")
_EMULATION = "dy2st.runtime.backends.cuda.emulation.namespace"
"""What stands for CuPy where `DY2ST_CUDA` asks for it."""


def cuda(index: int = 0) -> ModuleType:
    """Return CuPy with device `index` usable; one clear error when the package or the driver is not there."""
    try:
        cupy = importlib.import_module(_EMULATION if config.emulates_cuda() else "cupy")
    except ImportError:
        raise MissingExtraError("cupy", "cuda13", "running on a CUDA device") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own kinds for a missing driver
        raise RuntimeError(f"no CUDA device can be used: {error}") from None
    if not 0 <= index < count:
        raise RuntimeError(f"there is no CUDA device {index}; this machine has {count}")
    return cupy


def is_compiled_with_cuda() -> bool:
    """Return whether CuPy is installed with a device that it can use."""
    try:
        cuda()
    except (MissingExtraError, RuntimeError):
        return False
    return True


def parse(device: Any) -> Place:
    """Return the Place that `device` names: "cpu", "gpu", "gpu:1", a Place."""
    if isinstance(device, Place):
        return device
    kind, _, index = str(device).partition(":")
    if kind == "cpu":
        return CPU
    if kind in ("gpu", "cuda") and (not index or index.isdecimal()):
        return CUDAPlace(int(index or 0))
    raise ValueError(f"device {device!r} is not here; use 'cpu', 'gpu' or 'gpu:N'")


def set_device(device: Any) -> Place:
    """Make `device` ("cpu", "gpu", "gpu:N") the one on which new tensors are made; return it."""
    place = parse(device)
    current().process.place = place
    return place


def get_device() -> str:
    """Return the name of the current device: "cpu" or "gpu:N"."""
    place = current_place()
    return "cpu" if place.kind == "cpu" else f"gpu:{place.index}"


def current_place() -> Place:
    """Return the place on which new tensors are made."""
    return current().process.place or CPU


def namespace(place: Place | None = None) -> Any:
    """Return the array module of a place: NumPy, or CuPy."""
    place = place or current_place()
    return np if place.kind == "cpu" else cuda(place.index)


def place_of(array: Any) -> Place:
    """Return where an array lives."""
    return CPU if isinstance(array, np.ndarray) else Place("gpu", int(array.device.id))


def namespace_of(array: Any) -> Any:
    """Return the module that an array is of."""
    return np if isinstance(array, np.ndarray) else cuda(int(array.device.id))


def namespace_among(payloads: Iterable[Any]) -> Any:
    """Return the module that runs a Program on these: CuPy where an array is on a device, else NumPy.

    The first array in a list or a variant tells for all of it.
    """
    return next((namespace_of(x) for x in map(_first, payloads) if is_on_device(x)), np)


def _first(payload: Any) -> Any:
    """Return a payload, or the first array in it."""
    items = payload.items if isinstance(payload, Bundle) else payload
    if not isinstance(items, (list, tuple)):
        return items
    return next((x for x in map(_first, items) if hasattr(x, "dtype")), None)


def is_on_device(payload: Any) -> bool:
    """Return whether a payload is an array of CuPy."""
    return not isinstance(payload, np.ndarray) and hasattr(payload, "device")


def move(array: Any, place: Place) -> Any:
    """Return the array on `place`, itself when it is there."""
    if place_of(array) == place:
        return array
    if place.kind == "cpu":
        return array.get()
    cupy = cuda(place.index)
    with cupy.cuda.Device(place.index):
        return cupy.asarray(array)
