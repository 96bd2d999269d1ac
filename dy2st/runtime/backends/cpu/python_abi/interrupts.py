"""Where native code meets Python: a long run looks in now and then, as Python does between two lines, and calls it.

i32 @dy2st.poll(ptr %context)       other threads run and signals are handled
i32 @dy2st.python(ptr %context, i64 %number, ptr %operands, ptr %results)   `Run.call` of the context's run
(host_callbacks.py)

Both give INTERRUPTED where an error came from outside, from the handler of a signal: it then stands in the context.
That is why no callback of ctypes is called, which shows an error that comes before its first line and drops it.
Whether the run holds Python's lock is as it was before: kernels that take long give it away (job_scheduling.py).
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NoReturn

from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import ERROR, HOST, INTERRUPTED, OK, PARENT
from dy2st.runtime.backends.cpu.compile_link.code_loader import LoadedCode, load, named_product, provide
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction

Kept = tuple[int, int, int]
"""Addresses of the kind of an error, of the error, and of its traceback."""
_PYTHON = {
    "holds": ("PyGILState_Check", "i32 ()"),
    "state": ("PyGILState_GetThisThreadState", "ptr ()"),
    "let_go": ("PyEval_SaveThread", "ptr ()"),
    "take_back": ("PyEval_RestoreThread", "void (ptr)"),
    "end": ("PyThread_exit_thread", "void ()"),
    "signals": ("PyErr_CheckSignals", "i32 ()"),
    "fetch": ("PyErr_Fetch", "void (ptr, ptr, ptr)"),
    "ensure": ("PyGILState_Ensure", "i32 ()"),
    "release": ("PyGILState_Release", "void (i32)"),
    "number": ("PyLong_FromLongLong", "ptr (i64)"),
    "as_number": ("PyLong_AsLong", "i64 (ptr)"),
    "call": ("PyObject_Vectorcall", "ptr (ptr, ptr, i64, ptr)"),
    "drop": ("Py_DecRef", "void (ptr)"),
}
"""What is called of CPython, and as what."""


def _text() -> str:
    declared = (kind.replace("(", f"@dy2st.external.{name}(") for name, (_, kind) in _PYTHON.items())
    return "\n".join([*(f"declare {line}" for line in declared), _poll().text(), _call().text()])


def _poll() -> LLVMFunction:
    f = LLVMFunction("dy2st.export.poll", [("ptr", "%context")], "i32", also="nounwind")
    lacks = f.value(f"icmp eq i32 {f.call('i32', '@dy2st.external.holds')}, 0")  # a kernel may have given it away
    state = f.call("ptr", "@dy2st.external.state")
    with f.when(f.value(f"icmp eq ptr {state}, null"), "over"):  # Python has come to its end (gil.py)
        f.call("void", "@dy2st.external.end")
    with f.when(f.value(f"xor i1 {lacks}, true"), "holding"):
        f.call("ptr", "@dy2st.external.let_go")
    f.call("void", "@dy2st.external.take_back", f"ptr {state}")
    raised = f.value(f"icmp ne i32 {f.call('i32', '@dy2st.external.signals')}, 0")
    with f.when(raised, "raised"):
        _fetch(f, "%context")
    with f.when(lacks, "without"):
        f.call("ptr", "@dy2st.external.let_go")
    f.ret("i32", f.value(f"select i1 {raised}, i32 {INTERRUPTED}, i32 {OK}"))
    return f


def _call() -> LLVMFunction:
    parameters = [("ptr", "%context"), ("i64", "%number"), ("ptr", "%operands"), ("ptr", "%results")]
    f = LLVMFunction("dy2st.export.python", parameters, "i32", also="nounwind")
    lock = f.call("i32", "@dy2st.external.ensure")
    rows = [f.value(f"ptrtoint ptr {row} to i64") for row in ("%operands", "%results")]
    given = [f.call("ptr", "@dy2st.external.number", f"i64 {number}") for number in ("%number", *rows)]
    place = f.slot("ptr", len(given))
    for i, one in enumerate(given):
        f.store("ptr", one, f.offset(place, 8 * i))
    called = f.load("ptr", f.offset("%context", HOST))
    made = f.call("ptr", "@dy2st.external.call", f"ptr {called}", f"ptr {place}", f"i64 {len(given)}", "ptr null")
    for one in given:
        f.call("void", "@dy2st.external.drop", f"ptr {one}")
    with f.when(f.value(f"icmp eq ptr {made}, null"), "interrupted"):
        parent = f.load("ptr", f.offset("%context", PARENT))
        _fetch(f, f.value(f"select i1 {f.value(f'icmp eq ptr {parent}, null')}, ptr %context, ptr {parent}"))
        f.call("void", "@dy2st.external.release", f"i32 {lock}")
        f.ret("i32", str(INTERRUPTED))
    status = f.value(f"trunc i64 {f.call('i64', '@dy2st.external.as_number', f'ptr {made}')} to i32")
    f.call("void", "@dy2st.external.drop", f"ptr {made}")
    f.call("void", "@dy2st.external.release", f"i32 {lock}")
    f.ret("i32", status)
    return f


def _fetch(f: LLVMFunction, context: str) -> None:
    """Move the error of Python into a context."""
    f.call("void", "@dy2st.external.fetch", *(f"ptr {f.offset(context, ERROR + 8 * i)}" for i in range(3)))


@functools.cache
def _code() -> LoadedCode:
    for name, (function, _) in _PYTHON.items():
        provide(f"dy2st.external.{name}", functools.partial(_address, function))
    return load(product().binary)


def product() -> Artifact:
    """Return the code of what loops call to let Python look in, not yet loaded."""
    return named_product("signals", _text, level=0)


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


provide("dy2st.poll", lambda: _code().address("dy2st.export.poll"))
provide("dy2st.python", lambda: _code().address("dy2st.export.python"))


@functools.cache
def _restore() -> Any:
    return ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))


def raise_kept(error: Kept) -> NoReturn:
    """Raise an error that `poll` has left; KeyboardInterrupt where Python has shown the error and dropped it."""
    if error[0]:
        _restore()(*error)
    raise KeyboardInterrupt
