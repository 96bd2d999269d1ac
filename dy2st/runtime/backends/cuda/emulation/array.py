"""Arrays of the stand-in for a device. NumPy computes on them, on memory that nobody else may touch.

What copies to the host without being asked is refused, as CuPy refuses it; what the host asks for is counted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from dy2st.runtime.backends.cuda.emulation.memory import LIVE, STATISTICS, Memory

_OF_THE_HOST = {"ctypes", "tofile", "dump", "dumps", "byteswap", "setflags", "getfield"}
"""Methods of NumPy's arrays that a device has not."""


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):  # noqa: N801  CuPy's name
    """An array on the emulated device."""

    __slots__ = ("__weakref__", "_host", "_memory")
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(self, host: np.ndarray, memory: Memory):
        self._host, self._memory = host, memory

    # ---- what is known without the device ----------------------------------------------------------------------------
    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    strides = property(lambda self: self._host.strides)
    T = property(lambda self: wrapped(self._host.T))
    real = property(lambda self: wrapped(self._host.real), lambda self, value: self._set("real", value))
    imag = property(lambda self: wrapped(self._host.imag), lambda self, value: self._set("imag", value))

    @property
    def flags(self) -> SimpleNamespace:
        """How elements lie in memory."""
        flags = self._host.flags
        return SimpleNamespace(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=flags.owndata)

    @property
    def device(self) -> SimpleNamespace:
        """The device: number 0."""
        return SimpleNamespace(id=0)

    @property
    def data(self) -> SimpleNamespace:
        """Where the elements are."""
        return SimpleNamespace(ptr=address_of(self._host), mem=self._memory)

    @property
    def base(self) -> Any:
        """What owns the memory, for a view."""
        return None if address_of(self._host) == self._memory.ptr and self.nbytes == self._memory.size else self._memory

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found = dict(self._host.__array_interface__)
        return {key: found[key] for key in ("shape", "typestr", "data", "strides")} | {"version": 3}

    def __len__(self) -> int:
        return len(self._host)

    def __deepcopy__(self, _: Any) -> ndarray:
        return moved(self._host)

    def __reduce__(self) -> tuple[Any, ...]:
        return moved, (self._host,)

    def __repr__(self) -> str:
        return f"<array on the emulated device: {self.dtype}{list(self.shape)}>"

    # ---- what waits for the device -----------------------------------------------------------------------------------
    def get(self, *_: Any, **__: Any) -> np.ndarray:
        """Return a copy on the host."""
        STATISTICS.host_reads += 1
        return self._host.copy()

    def item(self, *place: int) -> Any:
        """Return an element as a number."""
        return self.get().item(*place)

    def tolist(self) -> Any:
        """Return the elements as lists of numbers."""
        return self.get().tolist()

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __index__(self) -> int:
        return self.get().__index__()

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # ---- what is refused ---------------------------------------------------------------------------------------------
    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return called(getattr(ufunc, method), operands, options)

    def __array_function__(self, function: Any, _: Any, operands: Any, options: Any) -> Any:
        return called(function, operands, options)

    # ---- parts -------------------------------------------------------------------------------------------------------
    def __getitem__(self, key: Any) -> Any:
        return wrapped(self._host[_key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._host[_key(key)] = unwrapped(value)

    def _set(self, part: str, value: Any) -> None:
        setattr(self._host, part, unwrapped(value))

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self._host.fill(unwrapped(value))

    def __getattr__(self, name: str) -> Any:
        own = None if name.startswith("_") or name in _OF_THE_HOST else getattr(self._host, name, None)
        if not callable(own):
            raise AttributeError(f"an array of a device has no {name!r}")

        def method(*operands: Any, **options: Any) -> Any:
            made = called(own, operands, options)
            return made if self is not None else None  # the memory of a view lives as long as this array

        return method


def address_of(host: np.ndarray) -> int:
    """Return the address of the first element."""
    return host.__array_interface__["data"][0]


def allocated(shape: Any, dtype: Any) -> ndarray:
    """Return an array whose elements nobody has written."""
    dtype = np.dtype(dtype)
    extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    size = dtype.itemsize * int(np.prod(extents, dtype=object))
    memory = Memory(size)
    return ndarray(np.ndarray(extents, dtype, _buffer(memory)), memory)


def moved(host: Any, dtype: Any = None) -> ndarray:
    """Return what is on the host as an array on the device."""
    host = np.asarray(host, dtype)
    made = allocated(host.shape, host.dtype)
    made._host[...] = host
    return made


def wrapped(made: Any) -> Any:
    """Return what NumPy made of arrays of the device as such an array: a view, or a new one."""
    if isinstance(made, np.generic):
        return moved(made)
    if isinstance(made, np.ndarray):
        memory = LIVE.find(address_of(made)) if made.size else None
        if memory is None:
            return moved(made)
        return ndarray(_writable(made, memory), memory)
    if isinstance(made, tuple):
        return tuple(map(wrapped, made))
    return [*map(wrapped, made)] if isinstance(made, list) else made


def _writable(view: np.ndarray, memory: Memory) -> np.ndarray:
    """Return a view that can be written through: a device has no read-only memory, for repeated elements neither."""
    return np.ndarray(view.shape, view.dtype, _buffer(memory), address_of(view) - memory.ptr, view.strides)


def _buffer(memory: Memory) -> Any:
    return (ctypes.c_char * memory.size).from_address(memory.ptr)


def unwrapped(value: Any) -> Any:
    """Return what NumPy is to compute with; an array of the host is refused."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (list, tuple)):
        made = [unwrapped(v) for v in value]
        return made if isinstance(value, list) else tuple(made)
    return {k: unwrapped(v) for k, v in value.items()} if isinstance(value, dict) else value


def called(function: Callable[..., Any], operands: Any, options: Any) -> Any:
    """Call a function of NumPy on arrays of the device."""
    return wrapped(function(*unwrapped(list(operands)), **unwrapped(dict(options))))


def _key(key: Any) -> Any:
    """Return a key of NumPy: arrays of the host may say places, which are copied to the device."""
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    return key._host if isinstance(key, ndarray) else key
