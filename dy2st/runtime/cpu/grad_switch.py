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

from dy2st.ir.context import Context
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.engine import named_product
from dy2st.runtime.cpu.integers import compare
from dy2st.runtime.cpu.methods import OWN, Methods, loaded, method_function, plate_text
from dy2st.runtime.cpu.products import Product
from dy2st.runtime.cpu.slots import maker, places, word
from dy2st.runtime.grad_mode import ENTER, EXIT, GradMode, enable_grad, no_grad

_CONTEXT, _OFF, _ON, _NOTHING, _NEW, _NEW_OFF, _NEW_ON, _ENTER, _EXIT, _SWITCHED, _GRAD, _CHANGES = range(
    OWN, OWN + 96, 8
)
"""Words of the plate: objects, functions of Python, and where slots stand."""
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
    objects = [Context, no_grad, enable_grad, ()]
    methods = [no_grad.__new__, enable_grad.__new__, ENTER, EXIT]
    slots = [contexts["switched"], contexts["grad"], changes["_changes"]]
    words = [*map(id, objects), maker(), *map(id, methods), *slots]
    code = loaded(product(), _PLATE, words, (objects, methods))
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
    texts = [plate_text(_PLATE)]
    for name, parameters in _FUNCTIONS.items():
        f = method_function(f"dy2st.grad.{name}", parameters, _PLATE)
        getattr(_Switch(f), name)()
        texts.append(f.text())
    return "\n\n".join(texts) + "\n"


class _Switch(Methods):
    """Writes the three functions."""

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
