"""bfloat16 through DLPack, which has a code for it that NumPy has not: the same memory goes as unsigned integers.

The code stands in the record that a capsule points to (github.com/dmlc/dlpack, dlpack.h): behind the address of the
elements, the device and the rank, in a byte; version, owner, deleter and flags precede them in a record with a version.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from dy2st.dtypes import bfloat16

_UNSIGNED, _BFLOAT = 1, 4
_CODE = {b"dltensor": 20, b"dltensor_versioned": 52}


class Capsule:
    """A DLPack capsule on the CPU as an object that gives it away, which it can do once."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def capsule_of(array: Any, **asked: Any) -> Any:
    """Return the capsule of an array; one of bfloat16 says so."""
    if array.dtype.name != "bfloat16":
        return array.__dlpack__(**asked)
    capsule = array.view(np.uint16).__dlpack__(**asked)
    _code(capsule).value = _BFLOAT
    return capsule


def array_of(source: Any) -> np.ndarray:
    """Return the memory of something on the CPU that speaks DLPack as an array."""
    try:
        return np.from_dlpack(source)
    except (BufferError, RuntimeError):
        capsule = _capsule(source)
        code = _code(capsule)
        if code.value != _BFLOAT:
            raise
        code.value = _UNSIGNED
        return np.from_dlpack(Capsule(capsule)).view(bfloat16.numpy)


def _capsule(source: Any) -> Any:
    """Return a capsule with a version where there is one: NumPy takes the memory of others for read-only."""
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:
        return source.__dlpack__()


def _code(capsule: Any) -> ctypes.c_uint8:
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    name = name_of(capsule)
    return ctypes.c_uint8.from_address(pointer_of(capsule, name) + _CODE[name])
