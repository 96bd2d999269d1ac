"""Machine code that writes what a call leaves behind: next values of parameters and of what an optimizer keeps.

    PyObject *dy2st.written(PyObject *plate, PyObject **given, Py_ssize_t count)

`given` is the list of results. A tensor that nobody shares gets its array; one that has a version, because it may have
views, goes to a function of Python with the array. A step of an optimizer writes some hundreds of them.

The plate has, behind what other plates have (entry.py):

    the function of Python   where a tensor has its array, its version and its gradient   how many lines
    a line for each write: the tensor, and the number of the result, -1 for no gradient
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.cpu import known_calls
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.engine import load, named_product
from dy2st.runtime.cpu.entry_values import API, Values
from dy2st.runtime.cpu.integers import compare
from dy2st.runtime.cpu.products import Product
from dy2st.runtime.cpu.slots import places
from dy2st.runtime.tensor import Tensor

NO_GRADIENT = -1
_END = API + 8 * len(api.NAMES)
_SHARED, _ARRAY, _VERSION, _GRADIENT, _COUNT, _LINES = range(_END, _END + 48, 8)


def known_writes(writes: Sequence[tuple[Tensor, int]], shared: Callable[[Tensor, Any], None]) -> Any:
    """Return the function that takes a list of results and makes these writes; None where Python has to do it.

    A write is a tensor and the number of a result, or `NO_GRADIENT`; `shared` writes one that has a version.
    """
    at = places(Tensor) if known_calls.is_loaded() else None
    if at is None:
        return None
    where = [id(shared), at["_payload"], at["_version"], at["_grad"], len(writes)]
    lines = [word for t, number in writes for word in (id(t), number)]
    plate = np.array([0, 0, *api.addresses(), *where, *lines], np.int64)
    return api.builtin_function(load(product().binary).address("dy2st.written"), "dy2st", plate, (shared, writes))


def product() -> Product:
    """Return this code, not yet loaded."""
    return named_product("known writes", _text, level=0)


def _text() -> str:
    f = Function("dy2st.written", [("ptr", "%plate"), ("ptr", "%given"), ("i64", "%count")], "ptr", also="nounwind")
    _Written(f, Module()).write()
    return f"{f.text()}\n"


class _Written(Values):
    def write(self) -> None:
        """Write the function."""
        f, results, row = self.f, self.f.load("ptr", "%given"), self.f.slot("ptr", 2)
        with f.loop(self._field(_COUNT, "i64"), hint="write") as i:
            line = f.offset(f.offset(self.table, _LINES), i, "[2 x i64]")
            tensor, number = f.load("ptr", line), f.load("i64", f.offset(line, 8))
            data, alone, shared, none, on = (f.label(hint) for hint in ("data", "alone", "shared", "none", "on"))
            f.branch(compare(f, "eq", number, NO_GRADIENT), none, data)
            f.start(none)
            self._put(tensor, _GRADIENT, self._address("None"))
            f.jump(on)
            f.start(data)
            value = self._sure(self._call("ptr", "PyList_GetItem", f"ptr {results}", f"i64 {number}"))
            version = f.load("ptr", f.offset(tensor, self._field(_VERSION, "i64")))
            f.branch(self._is(version, "None"), alone, shared)
            f.start(alone)
            self._put(tensor, _ARRAY, value)
            f.jump(on)
            f.start(shared)
            f.store("ptr", tensor, row)
            f.store("ptr", value, f.offset(row, 8))
            given = f"ptr {self._field(_SHARED, 'ptr')}", f"ptr {row}", "i64 2", "ptr null"
            made = self._sure(self._call("ptr", "PyObject_Vectorcall", *given))
            self._call("void", "Py_DecRef", f"ptr {made}")
            f.start(on)
        self._call("void", "Py_IncRef", f"ptr {self._address('None')}")
        f.ret("ptr", self._address("None"))
        f.start(self.failed)
        f.ret("ptr", "null")

    def _field(self, at: int, kind: str) -> str:
        return self.f.load(kind, self.f.offset(self.table, at))

    def _put(self, tensor: str, at: int, value: str) -> None:
        """Write that a slot has another object."""
        f = self.f
        place = f.offset(tensor, self._field(at, "i64"))
        before = f.load("ptr", place)
        self._call("void", "Py_IncRef", f"ptr {value}")
        f.store("ptr", value, place)
        self._call("void", "Py_DecRef", f"ptr {before}")
