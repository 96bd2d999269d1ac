"""Addresses of the functions and objects of CPython and NumPy that native code uses to be called as a builtin function.

The places in NumPy's tables are those of its stable C API (numpy/core/code_generators/numpy_api.py), the places in
array objects those of `PyArrayObject_fields`; `available` looks at a real array before anything relies on them.
"""

from __future__ import annotations

import ctypes
import datetime
import functools
import importlib
from typing import Any

import numpy as np

from dy2st import dtypes

_ARRAY_TYPE, _ARRAY_NEW, _SET_BASE = 2, 93, 282
DATA, RANK, SHAPE, BASE, DESCRIPTOR, FLAGS = 16, 24, 32, 48, 56, 64
"""Where the fields of an array object stand."""
TYPE_NUMBER = 28
"""Where the descriptor of a dtype has its number."""
TYPE = 8
"""Where the type of any object stands."""
HOLDERS = 0
"""Where any object counts those who hold it, in four bytes."""
BEHAVED = 0x1 | 0x100
"""The flags of an array that is in row-major order and aligned."""
OWNS, WRITEABLE = 0x4, 0x400
KEYWORDS, NO_ARGUMENTS, ROW_OF_ARGUMENTS = 0x2, 0x4, 0x80
"""How a function made of native code takes arguments, as Python's flags have it."""
OWN_FLAGS = BEHAVED | WRITEABLE
ELEMENTS = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"),
    *("float16", "complex64", "complex128", "bfloat16"),
)
"""The element types of the arrays that are read and made; NumPy gives bfloat16 a number when its package loads."""

_PYTHON = (
    "PyList_New", "PyList_SetItem", "PyCapsule_New", "PyCapsule_GetPointer", "PyLong_FromLongLong",
    "PyFloat_FromDouble", "PyBool_FromLong", "PyLong_AsLongLongAndOverflow", "PyFloat_AsDouble", "Py_IncRef",
    "Py_DecRef", "PyList_Size", "PyList_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyTuple_GetItem",
    "PyCapsule_GetDestructor", "PyObject_Vectorcall", "PyTuple_Size", "PyContextVar_Get", "PyContextVar_Set",
    "PyDict_GetItemWithError", "PyCapsule_IsValid", "PyErr_NoMemory",
)  # fmt: skip
_OBJECTS = {
    "float": float, "int": int, "True": True, "False": False, "None": None, "list": list,
    "capsule": type(datetime.datetime_CAPI),
}  # fmt: skip

NAMES = (*_PYTHON, *_OBJECTS, "PyArray_Type", "PyArray_New", "PyArray_SetBaseObject", *ELEMENTS)
"""What `addresses` gives, in this order; an element type stands for its descriptor."""


PLACE = 16
"""Where their addresses stand on a plate (entry.py), in bytes."""
BEHIND = PLACE + 8 * len(NAMES)
"""Where words of others stand behind them."""


def available() -> bool:
    """Return whether this Python and this NumPy are laid out as this module has it."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    at = id(array)
    try:
        table = _numpy_table()
    except (AttributeError, ValueError):
        return False
    return (
        _word(at + TYPE) == id(np.ndarray) == table[_ARRAY_TYPE]
        and _word(at + DATA) == array.ctypes.data
        and ctypes.c_int.from_address(at + RANK).value == 2
        and _word(_word(at + SHAPE) + 8) == 3
        and _word(at + DESCRIPTOR) == id(np.dtype(np.float32))
        and ctypes.c_int.from_address(at + FLAGS).value & OWN_FLAGS == OWN_FLAGS
        and _word(at + BASE) == id(array.base)
        and _counts_holders(array)
        and all(hasattr(ctypes.pythonapi, name) for name in _PYTHON)
    )


@functools.cache
def addresses(low: bool = False) -> tuple[int, ...]:
    """Return the addresses of `NAMES`, with `low` that of bfloat16 too."""
    table = _numpy_table()
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON]
    numpy_ones = [table[_ARRAY_TYPE], table[_ARRAY_NEW], table[_SET_BASE]]
    return (
        *functions,
        *map(id, _OBJECTS.values()),
        *numpy_ones,
        *(id(dtypes.dtype(name).numpy) if low or name != "bfloat16" else 0 for name in ELEMENTS),
    )


def type_number(dtype: dtypes.DType) -> int:
    """Return NumPy's number of an element type."""
    return dtype.numpy.num


def builtin_function(address: int, name: str, owner: Any, keeps: Any = None) -> Any:
    """Return the function object of native code that takes (owner, arguments, their number) as `METH_FASTCALL` has it.

    Python reads the definition again when the function goes, so the function holds it, in the place of its module, and
    with it what the code needs beside its owner.
    """
    definition = _MethodDef(name.encode(), address, ROW_OF_ARGUMENTS, None)
    definition.keeps = keeps
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return make(ctypes.addressof(definition), owner, definition)


def method(kind: type[Any], address: int, name: str, flags: int) -> Any:
    """Return what makes native code a method of a class when it is an attribute there; it is there for good."""
    definition = _MethodDef(name.encode(), address, flags, None)
    keep_for_good(definition)
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_void_p)
    return make(kind, ctypes.addressof(definition))


def keep_for_good(x: Any) -> None:
    """Let an object stay until the process has ended: machine code reads it, which may run when modules are gone."""
    hold = ctypes.pythonapi.Py_IncRef
    hold.restype, hold.argtypes = None, (ctypes.py_object,)
    hold(x)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _counts_holders(x: Any) -> bool:
    """Return whether those who hold an object are counted where this module has it."""
    count = ctypes.c_uint32.from_address(id(x) + HOLDERS)
    before = count.value
    holder = [x, x]
    return count.value == before + len(holder)


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@functools.cache
def _numpy_table() -> Any:
    core: Any = importlib.import_module("numpy._core._multiarray_umath")

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = get(core._ARRAY_API, None)
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_uint64))
