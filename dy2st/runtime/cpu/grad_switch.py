"""Machine code for `with no_grad():`, which most calls of Programs stand in and which takes as long as one.

    PyObject *make(PyObject *kind, PyObject **given, size_t count, PyObject *names)      no_grad()
    PyObject *enter(PyObject *self, PyObject *)
    PyObject *exit(PyObject *self, PyObject **given, Py_ssize_t count)

They do what the methods in `runtime/grad_mode.py` do where the context was switched before and nothing else has changed
it meanwhile; else they call those. `install` puts them there once native code runs, where slots are found as they must
be and `type` says that it calls classes by the function that stands at a place of theirs.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from dy2st.ir.context import _CURRENT, Context  # pyright: ignore[reportPrivateUsage]
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.engine import load, named_product, provide
from dy2st.runtime.cpu.entry_values import API, Values
from dy2st.runtime.cpu.integers import compare
from dy2st.runtime.cpu.products import Product
from dy2st.runtime.cpu.slots import maker, places, word
from dy2st.runtime.grad_mode import ENTER, EXIT, GradMode, enable_grad, no_grad

_END = API + 8 * len(api.NAMES)
_VARIABLE, _CONTEXT, _OFF, _ON, _NOTHING, _NEW, _NEW_OFF, _NEW_ON, _ENTER, _EXIT, _SWITCHED, _GRAD, _CHANGES = range(
    _END, _END + 104, 8
)
"""Behind what other plates have (entry.py): objects, functions of Python, and where slots stand."""
_VECTORCALL_OFFSET = 56
"""Where a type says at which place its instances have the function that calls them."""
_PLATE = "dy2st.external.grad.plate"
_FUNCTIONS = {
    "make": [("ptr", "%kind"), ("ptr", "%given"), ("i64", "%flags"), ("ptr", "%names")],
    "enter": [("ptr", "%self"), ("ptr", "%nothing")],
    "exit": [("ptr", "%self"), ("ptr", "%given"), ("i64", "%count")],
}


@functools.cache
def install() -> bool:
    """Let machine code switch gradients from now on; say whether it does."""
    at = _vectorcall_place() if api.available() else None
    contexts, changes = places(Context), places(no_grad)
    if at is None or contexts is None or changes is None:
        return False
    objects = [_CURRENT, Context, no_grad, enable_grad, ()]
    methods = [no_grad.__new__, enable_grad.__new__, ENTER, EXIT]
    slots = [contexts["switched"], contexts["grad"], changes["_changes"]]
    words = [0, 0, *api.addresses(), *map(id, objects), maker(), *map(id, methods), *slots]
    plate = _keep(np.array(words, np.int64), objects, methods)
    provide(_PLATE, lambda: id(plate))
    code = load(product().binary)
    enter = api.method(GradMode, code.address("dy2st.grad.enter"), "__enter__", api.NO_ARGUMENTS)
    leave = api.method(GradMode, code.address("dy2st.grad.exit"), "__exit__", api.ROW_OF_ARGUMENTS)
    for name, made in {"__enter__": enter, "__exit__": leave}.items():
        setattr(GradMode, name, made)
    for kind in (no_grad, enable_grad):
        ctypes.c_void_p.from_address(id(kind) + at).value = code.address("dy2st.grad.make")
    return True


def product() -> Product:
    """Return this code, not yet loaded."""
    return named_product("grad switch", _text, level=0)


_kept: list[Any] = []
"""What machine code reads until Python ends."""


def _keep(plate: np.ndarray[Any, Any], *more: Any) -> np.ndarray[Any, Any]:
    _kept.append((plate, more))
    return plate


def _vectorcall_place() -> int | None:
    """Return where a class has the function that makes its instances; None where this Python has it in another way."""
    at = word(id(type) + _VECTORCALL_OFFSET)
    size: Any = type.__basicsize__
    if at % 8 or not 2 * _VECTORCALL_OFFSET < at < size:
        return None
    known = all(word(id(kind) + at) for kind in (list, dict, tuple, type))
    return at if known and not any(word(id(kind) + at) for kind in (object, no_grad, enable_grad)) else None


# ---- the code ------------------------------------------------------------------------------------------------------
def _text() -> str:
    texts = [f"@{_PLATE} = external global i64"]
    for name, parameters in _FUNCTIONS.items():
        f = Function(f"dy2st.grad.{name}", parameters, "ptr", also="nounwind")
        f.do(f"%plate = getelementptr i8, ptr @{_PLATE}, i64 0")
        writer = _Switch(f, Module())
        getattr(writer, name)()
        texts.append(f.text())
    return "\n\n".join(texts) + "\n"


class _Switch(Values):
    """Writes the three functions."""

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
        status = self._call("i32", "PyContextVar_Get", f"ptr {self._word(_VARIABLE)}", "ptr null", f"ptr {now}")
        self._fine(self.f.value(f"icmp eq i32 {status}, 0"))
        return self.f.load("ptr", now)

    def _make_current(self, x: str) -> str:
        """Write a switch to another context; return whether it was made, else Python's error is set."""
        token = self._call("ptr", "PyContextVar_Set", f"ptr {self._word(_VARIABLE)}", f"ptr {x}")
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

    def _nothing(self) -> None:
        self.f.ret("ptr", self._held(self._address("None")))

    def make(self) -> None:
        """Write what makes a `no_grad` or `enable_grad`."""
        f = self.f
        count = f.value(f"and i64 %flags, {2**63 - 1}")
        self._only(compare(f, "eq", count, 0))
        self._only(f.value("icmp eq ptr %names, null"))
        empty = self._word(_NOTHING)
        made = self._sure(f.call("ptr", self._word(_NEW), "ptr %kind", f"ptr {empty}", "ptr null"))
        f.store("ptr", self._held(empty), self._slot(made, _CHANGES))
        f.ret("ptr", made)
        f.start(self.other)
        off = f.value(f"icmp eq ptr %kind, {self._word(_OFF)}")
        function = f.value(f"select i1 {off}, ptr {self._word(_NEW_OFF)}, ptr {self._word(_NEW_ON)}")
        self._by_python(function, "%kind", count, "%names")
        self._end()

    def enter(self) -> None:
        """Write the beginning of a `with`."""
        f, kind, leave = self.f, self._type_of("%self"), self.f.label("leave")
        off, on = (f.value(f"icmp eq ptr {kind}, {self._word(at)}") for at in (_OFF, _ON))
        self._only(f.value(f"or i1 {off}, {on}"))
        place = self._slot("%self", _CHANGES)
        changes = f.load("ptr", place)
        self._only(f.value(f"icmp ne ptr {changes}, null"))
        before = self._current()
        self._else(f.value(f"icmp eq ptr {self._type_of(before)}, {self._word(_CONTEXT)}"), leave)
        after = f.load("ptr", self._slot(before, _SWITCHED))
        self._else(f.value(f"icmp ne ptr {after}, null"), leave)
        self._else(f.value(f"icmp eq ptr {self._type_of(after)}, {self._word(_CONTEXT)}"), leave)
        mode = f.value(f"select i1 {off}, ptr {self._address('False')}, ptr {self._address('True')}")
        self._else(f.value(f"icmp eq ptr {f.load('ptr', self._slot(after, _GRAD))}, {mode}"), leave)
        row = self._call("ptr", "PyTuple_New", "i64 3")
        self._else(f.value(f"icmp ne ptr {row}, null"), bad := f.label("bad"))
        for i, x in enumerate((before, after, changes)):
            self._call("i32", "PyTuple_SetItem", f"ptr {row}", f"i64 {i}", f"ptr {self._held(x)}")
        self._let_go(before)  # as this function held it
        made, good, lost = self._make_current(after), f.label("good"), f.label("lost")
        f.branch(made, good, lost)
        f.start(good)
        f.store("ptr", row, place)
        self._let_go(changes)
        self._nothing()
        f.start(lost)
        self._let_go(row)
        f.jump(self.failed)
        f.start(bad)
        self._let_go(before)
        f.jump(self.failed)
        f.start(leave)
        self._let_go(before)
        f.jump(self.other)
        f.start(self.other)
        self._by_python(self._word(_ENTER), "%self", "0")
        self._end()

    def exit(self) -> None:
        """Write the end of a `with`."""
        f, place = self.f, self._slot("%self", _CHANGES)
        changes = f.load("ptr", place)
        self._only(f.value(f"icmp ne ptr {changes}, null"))
        self._only(compare(f, "eq", self._call("i64", "PyTuple_Size", f"ptr {changes}"), 3))
        before, after, rest = (self._call("ptr", "PyTuple_GetItem", f"ptr {changes}", f"i64 {i}") for i in range(3))
        now = self._current()
        self._let_go(now)
        self._only(f.value(f"icmp eq ptr {now}, {after}"))
        self._fine(self._make_current(before))
        f.store("ptr", self._held(rest), place)
        self._let_go(changes)
        self._nothing()
        f.start(self.other)
        self._by_python(self._word(_EXIT), "%self", "%count")
        self._end()

    def _else(self, condition: str, other: str) -> None:
        """Go on where a condition holds, else to a label."""
        on = self.f.label("on")
        self.f.branch(condition, on, other)
        self.f.start(on)
