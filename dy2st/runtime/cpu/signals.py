"""What a long native run does now and then, as Python does between two lines: other threads run, signals are handled.

i32 @dy2st.poll(ptr %context)       OK, or INTERRUPTED: then the error stands in the context
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NoReturn

from dy2st.runtime.cpu.emit import Function
from dy2st.runtime.cpu.engine import Code, compile_text, provide
from dy2st.runtime.cpu.memory import ERROR, INTERRUPTED, OK

Kept = tuple[int, int, int]
"""Addresses of the kind of an error, of the error, and of its traceback."""
_PYTHON = {
    "let_go": ("PyEval_SaveThread", "ptr ()"),
    "take_back": ("PyEval_RestoreThread", "void (ptr)"),
    "signals": ("PyErr_CheckSignals", "i32 ()"),
    "fetch": ("PyErr_Fetch", "void (ptr, ptr, ptr)"),
}
"""What is called of CPython, and as what."""


def _text() -> str:
    f = Function("dy2st.export.poll", [("ptr", "%context")], "i32", also="nounwind")
    f.call("void", "@dy2st.external.take_back", f"ptr {f.call('ptr', '@dy2st.external.let_go')}")
    raised, error, fine = f.call("i32", "@dy2st.external.signals"), f.label("error"), f.label("fine")
    f.branch(f.value(f"icmp eq i32 {raised}, 0"), fine, error)
    f.start(error)
    f.call("void", "@dy2st.external.fetch", *(f"ptr {f.offset('%context', ERROR + 8 * i)}" for i in range(3)))
    f.ret("i32", str(INTERRUPTED))
    f.start(fine)
    f.ret("i32", str(OK))
    declared = (kind.replace("(", f"@dy2st.external.{name}(") for name, (_, kind) in _PYTHON.items())
    return "\n".join([*(f"declare {line}" for line in declared), f.text()])


@functools.cache
def _code() -> Code:
    for name, (function, _) in _PYTHON.items():
        provide(f"dy2st.external.{name}", functools.partial(_address, function))
    return compile_text(_text())


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


provide("dy2st.poll", lambda: _code().address("dy2st.export.poll"))


@functools.cache
def _restore() -> Any:
    return ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))


def raise_kept(error: Kept) -> NoReturn:
    """Raise an error that `poll` has left; KeyboardInterrupt where Python has shown the error and dropped it."""
    if error[0]:
        _restore()(*error)
    raise KeyboardInterrupt
