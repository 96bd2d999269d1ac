"""Where the inner loops of NumPy's ufuncs stand: compiled code that native code calls without Python.

NumPy's linear algebra (LAPACK), its Fourier transform (pocketfft), its products of integers and its arithmetic of
complex numbers are loops of one form, which its ufunc objects hold, one for each combination of types:

    void loop(char **args, intptr_t const *dimensions, intptr_t const *steps, void *data)

`dimensions` are the number of iterations and the core extents in the order in which the ufunc's signature names them,
`steps` the bytes from iteration to iteration of each argument, then those of the core axes of each argument. The
object's fields are part of NumPy's C interface (PyUFuncObject); what they hold is compared with what Python says of the
ufunc before an address is taken from them. A loop that this NumPy does not have stands at 0, and then `eval` runs.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import numpy as np

PREFIX = "ufunc."
_MODULES = {"linalg": "numpy.linalg._umath_linalg", "fft": "numpy.fft._pocketfft_umath", "numpy": "numpy"}


class _Fields(ctypes.Structure):
    """The first fields of a ufunc object."""

    _fields_ = (
        ("references", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("inputs", ctypes.c_int),
        ("outputs", ctypes.c_int), ("arguments", ctypes.c_int), ("identity", ctypes.c_int),
        ("loops", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)), ("count", ctypes.c_int), ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_char)),
    )  # fmt: skip


def address(name: str) -> int:
    """Return what `ufunc.<module>.<name>.<types>.loop` or `... .data` stands for; 0 where there is no such loop."""
    _, module, ufunc, types, part = name.split(".")
    return _found(module, ufunc, types)[part == "data"]


@functools.cache
def _found(module: str, name: str, types: str) -> tuple[int, int]:
    try:
        ufunc = getattr(importlib.import_module(_MODULES[module]), name)
    except (ImportError, AttributeError):  # another NumPy
        return 0, 0
    if not isinstance(ufunc, np.ufunc) or types not in ufunc.types:
        return 0, 0
    fields = _Fields.from_address(id(ufunc))
    at = ufunc.types.index(types)
    if not _are_right(fields, ufunc, at):
        return 0, 0
    return int(fields.loops[at] or 0), int(fields.data[at] or 0) if fields.data else 0


def _are_right(fields: _Fields, ufunc: Any, at: int) -> bool:
    """Return whether the fields are what Python says of the ufunc, and the loop that of these types."""
    told = fields.inputs, fields.outputs, fields.arguments, fields.count
    if told != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes) or fields.name != ufunc.__name__.encode():
        return False
    numbers = [np.dtype(letter).num for letter in ufunc.types[at].replace("->", "")]
    return [ord(fields.types[at * ufunc.nargs + i]) for i in range(ufunc.nargs)] == numbers
