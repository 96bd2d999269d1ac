"""Machine code for `StaticFunction.__call__`: a call like the last one goes to what recognises it, and nothing between.

    PyObject *call(PyObject *self, PyObject **given, Py_ssize_t count, PyObject *names)

A function keeps in a slot what its last call was recognised by: what of the context decides (`MODES`), the number of
arguments, the function that recognises such calls (jit/fast_call.py) and its Program. Where nothing is traced, the
context has the same objects, Programs are not turned off and as many arguments are given by position, that function is
called. Where it says that this is another call, and for all others, the method in Python does it.
"""

from __future__ import annotations

import functools
from typing import Any

from dy2st.ir.context import Context, Process
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.engine import named_product
from dy2st.runtime.cpu.integers import compare
from dy2st.runtime.cpu.methods import OWN, Methods, loaded, method_function, plate_text
from dy2st.runtime.cpu.products import Product
from dy2st.runtime.cpu.slots import places

MODES = ("grad", "amp", "checkpoint", "process")
"""What of a context decides what a call is recognised by, in this order."""
_CALL, _UNSEEN, _ENABLED, _LIKE, _LAST, _TRACE, _MODES = range(OWN, OWN + 56, 8)
_PLATE = "dy2st.external.static.plate"


@functools.cache
def install(kind: type[Any], like: str, last: str, unseen: object) -> bool:
    """Let machine code make calls of the instances of a class from now on; say whether it does.

    The slot `like` has None or what the last call was recognised by: its `MODES`, the number of arguments, the function
    and the Program. `last` has the Program that ran last.
    """
    found = [places(one) for one in (kind, Context, Process)] if api.available() else [None]
    if any(one is None for one in found):
        return False
    own, contexts, processes = (one or {} for one in found)
    call = kind.__call__
    words = [id(call), id(unseen), processes["to_static_enabled"], own[like], own[last], contexts["trace"]]
    words += [contexts[mode] for mode in MODES]
    code = loaded(product(), _PLATE, words, (call, unseen))
    name, flags = "__call__", api.ROW_OF_ARGUMENTS | api.KEYWORDS
    setattr(kind, name, api.method(kind, code.address("dy2st.static.call"), name, flags))
    return True


def product() -> Product:
    """Return this code, not yet loaded."""
    return named_product("static calls", _text, level=0)


def _text() -> str:
    parameters = [("ptr", "%self"), ("ptr", "%given"), ("i64", "%count"), ("ptr", "%names")]
    f = method_function("dy2st.static.call", parameters, _PLATE)
    _Call(f).write()
    return f"{plate_text(_PLATE)}\n\n{f.text()}\n"


class _Call(Methods):
    def write(self) -> None:
        """Write the call."""
        f = self.f
        self._only(f.value("icmp eq ptr %names, null"))
        like = f.load("ptr", self._slot("%self", _LIKE))
        self._only(f.value(f"icmp ne ptr {like}, null"))
        self._only(f.value(f"icmp ne ptr {like}, {self._address('None')}"))
        *modes, number, call, program = (
            self._call("ptr", "PyTuple_GetItem", f"ptr {like}", f"i64 {i}") for i in range(len(MODES) + 3)
        )
        now = self._current()
        self._let_go(now)  # whoever made it current holds it
        trace = f.load("ptr", self._slot(now, _TRACE))
        self._only(f.value(f"icmp eq ptr {trace}, {self._address('None')}"))
        for i, mode in enumerate(modes):
            self._only(f.value(f"icmp eq ptr {f.load('ptr', self._slot(now, _MODES + 8 * i))}, {mode}"))
        enabled = f.load("ptr", self._slot(modes[MODES.index("process")], _ENABLED))
        self._only(f.value(f"icmp eq ptr {enabled}, {self._address('True')}"))
        over = f.slot("i32")
        count = self._call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {number}", f"ptr {over}")
        self._only(compare(f, "eq", count, "%count"))
        self._held(like)  # while it runs, another call may put something else there
        made = self._call("ptr", "PyObject_Vectorcall", f"ptr {call}", "ptr %given", "i64 %count", "ptr null")
        other, done, ended = f.label("unseen"), f.label("done"), f.label("ended")
        f.branch(f.value(f"icmp eq ptr {made}, {self._word(_UNSEEN)}"), other, done)
        f.start(other)
        self._let_go(made)
        self._let_go(like)
        f.jump(self.other)
        f.start(done)
        place = self._slot("%self", _LAST)
        last = f.load("ptr", place)
        another = f.value(f"icmp ne ptr {last}, {program}")
        change = f.value(f"and i1 {another}, {f.value(f'icmp ne ptr {made}, null')}")
        with f.when(change, "change"):
            f.store("ptr", self._held(program), place)
            self._let_go(last)
        f.jump(ended)
        f.start(ended)
        self._let_go(like)
        f.ret("ptr", made)
        f.start(self.other)
        self._by_python(self._word(_CALL), "%self", "%count", "%names")
        self._end()
