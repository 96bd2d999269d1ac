"""The module that stands for `cupy` where `DY2ST_CUDA` is `emulated`: NumPy's functions on arrays of the device."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from dy2st.runtime.backends.cpu.compile_link.code_loader import linked, load
from dy2st.runtime.backends.cuda.emulation.array import (
    address_of,
    allocated,
    called,
    moved,
    ndarray,
    unwrapped,
    wrapped,
)
from dy2st.runtime.backends.cuda.emulation.memory import LIVE, STATISTICS

is_emulated = True
"""What kernels are made for is asked of this."""


class ufunc:  # noqa: N801  CuPy's name
    """A function of elements."""

    def __init__(self, function: np.ufunc):
        self._function = function
        self.nin, self.nout, self.__name__ = function.nin, function.nout, function.__name__

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return called(self._function, operands, options)

    def at(self, array: ndarray, places: Any, values: Any) -> None:
        """Combine elements at places with values, one after the other."""
        self._function.at(unwrapped(array), unwrapped(places), unwrapped(values))


def asarray(value: Any, dtype: Any = None, **_: Any) -> ndarray:
    """Return an array on the device: of the host's numbers, lists and arrays too."""
    if isinstance(value, ndarray):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(v, ndarray) for v in value):
        return wrapped(np.asarray(unwrapped(value), dtype))
    STATISTICS.copied_in += 1
    return moved(value, dtype)


def array(value: Any, dtype: Any = None, copy: bool = True, **_: Any) -> ndarray:
    """Return a new array on the device."""
    made = asarray(value, dtype)
    return made.copy() if copy and made is value else made


def ascontiguousarray(value: Any, dtype: Any = None) -> ndarray:
    """Return an array without gaps on the device."""
    found = asarray(value, dtype)
    return found if found.flags.c_contiguous else found.copy()


def empty(shape: Any, dtype: Any = float, **_: Any) -> ndarray:
    """Return an array whose elements nobody has written."""
    return allocated(shape, dtype)


def asnumpy(value: Any) -> np.ndarray:
    """Return an array on the host."""
    return value.get() if isinstance(value, ndarray) else np.asarray(value)


class _Function:
    def __init__(self, address: int, code: object):
        self._code, self._call = code, ctypes.CFUNCTYPE(None)(address)

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        STATISTICS.launches += 1
        if not 1 <= grid[0] < 1 << 31 or not 1 <= block[0] <= 1024:
            raise ValueError(f"invalid configuration: {grid[0]} blocks of {block[0]} threads")
        self._call(*(ctypes.c_int64(_word(argument)) for argument in arguments), ctypes.c_int64(grid[0]))


class Module:
    """Code on the device."""

    def load(self, image: bytes) -> None:
        """Take the object file of kernels."""
        self._code = load(linked([image]))

    def get_function(self, name: str) -> _Function:
        """Return a kernel."""
        return _Function(self._code.address(name), self._code)


def _word(argument: Any) -> int:
    """Return what a kernel is given for a number or an array of the device; others are refused."""
    if isinstance(argument, ndarray):
        if argument.size and LIVE.find(address_of(argument._host)) is not argument.data.mem:
            raise ValueError("a kernel was given an array whose memory is not the device's")
        return address_of(argument._host)
    if isinstance(argument, (int, np.integer)):
        return int(argument)
    raise TypeError(f"Unsupported type {type(argument)}")


class _Device(nullcontext[None]):
    def __init__(self, index: int = 0):
        super().__init__()
        self.id = index

    def synchronize(self) -> None:
        """Wait for what has been launched; here it is done."""


cuda = SimpleNamespace(
    runtime=SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError),
    function=SimpleNamespace(Module=Module, Function=_Function),
    Device=_Device,
)


def _like(found: Any) -> Any:
    """Return what stands for something of NumPy."""
    if isinstance(found, np.ufunc):
        return ufunc(found)
    if isinstance(found, types.ModuleType):
        return _Part(found)
    if isinstance(found, type) or not callable(found):
        return found
    return _calling(found)


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*operands: Any, **options: Any) -> Any:
        return called(function, operands, options)

    return call


class _Part:
    """A module in NumPy."""

    def __init__(self, module: types.ModuleType):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _like(getattr(self._module, name))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = _like(getattr(np, name))
    globals()[name] = found
    return found
