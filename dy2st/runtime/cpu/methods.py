"""Native code that stands in the place of a method written in Python, and calls that where something is unusual.

It has no owner as a builtin function has one, so the plate is a symbol, which stands for the array object of the plate:
behind what other plates have (entry.py) come words of the module's own, the variable of the current context first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.ir.context import _CURRENT  # pyright: ignore[reportPrivateUsage]
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.engine import Code, load, provide
from dy2st.runtime.cpu.entry_values import API, Values
from dy2st.runtime.cpu.products import Product

VARIABLE = API + 8 * len(api.NAMES)
OWN = VARIABLE + 8
"""Where the words of a module begin."""


def loaded(product: Product, symbol: str, words: list[int], keeps: Any) -> Code:
    """Load the code of methods whose plate has these words of its own; `keeps` holds the objects among them."""
    plate = np.array([0, 0, *api.addresses(), id(_CURRENT), *words], np.int64)
    api.keep_for_good((plate, keeps))
    provide(symbol, lambda: id(plate))
    return load(product.binary)


def plate_text(symbol: str) -> str:
    """Return the line that declares a plate."""
    return f"@{symbol} = external global i64"


def method_function(name: str, parameters: list[tuple[str, str]], symbol: str) -> Function:
    """Return a function that has its plate."""
    f = Function(name, parameters, "ptr", also="nounwind")
    f.do(f"%plate = getelementptr i8, ptr @{symbol}, i64 0")
    return f


class Methods(Values):
    """Writes methods."""

    def __init__(self, f: Function):
        super().__init__(f, Module())

    def _word(self, at: int, kind: str = "ptr") -> str:
        return self.f.load(kind, self.f.offset(self.table, at))

    def _type_of(self, x: str) -> str:
        return self.f.load("ptr", self.f.offset(x, api.TYPE))

    def _slot(self, x: str, at: int) -> str:
        return self.f.offset(x, self._word(at, "i64"))

    def _held(self, x: str) -> str:
        self._call("void", "Py_IncRef", f"ptr {x}")
        return x

    def _let_go(self, x: str) -> None:
        self._call("void", "Py_DecRef", f"ptr {x}")

    def _current(self) -> str:
        """Write a read of the current context, which is held."""
        now = self.f.slot("ptr")
        status = self._call("i32", "PyContextVar_Get", f"ptr {self._word(VARIABLE)}", "ptr null", f"ptr {now}")
        self._fine(self.f.value(f"icmp eq i32 {status}, 0"))
        return self.f.load("ptr", now)

    def _make_current(self, x: str) -> str:
        """Write a switch to another context; return whether it was made, else Python's error is set."""
        token = self._call("ptr", "PyContextVar_Set", f"ptr {self._word(VARIABLE)}", f"ptr {x}")
        made = self.f.value(f"icmp ne ptr {token}, null")
        with self.f.when(made, "made"):
            self._let_go(token)
        return made

    def _by_python(self, function: str, first: str, count: str, names: str = "null") -> None:
        """Write a call of a function of Python with an object and those that were `given`, and its return."""
        f = self.f
        every = f.value(f"add i64 {count}, 1")
        more = f.slot("i64")
        f.store("i64", "0", more)
        if names != "null":
            with f.when(f.value(f"icmp ne ptr {names}, null"), "named"):
                f.store("i64", self._call("i64", "PyTuple_Size", f"ptr {names}"), more)
        total = f.value(f"add i64 {count}, {f.load('i64', more)}")
        row = f.value(f"alloca ptr, i64 {f.value(f'add i64 {total}, 1')}")
        f.store("ptr", first, row)
        if count != "0":
            with f.loop(total, hint="given") as i:
                f.store("ptr", f.load("ptr", f.offset("%given", i, "ptr")), f.offset(f.offset(row, 8), i, "ptr"))
        f.ret("ptr", self._call("ptr", "PyObject_Vectorcall", f"ptr {function}", f"ptr {row}", f"i64 {every}",
                                f"ptr {names}"))  # fmt: skip

    def _end(self) -> None:
        """Write what failed calls return."""
        self.f.start(self.failed)
        self.f.ret("ptr", "null")

    def _else(self, condition: str, other: str) -> None:
        """Go on where a condition holds, else to a label."""
        on = self.f.label("on")
        self.f.branch(condition, on, other)
        self.f.start(on)
