"""Machine code for `with no_grad():`, which most calls of Programs stand in and which takes as long as one.

    PyObject *make(PyObject *kind, PyObject **given, size_t count, PyObject *names)      no_grad()
    PyObject *enter(PyObject *self, PyObject *)
    PyObject *exit(PyObject *self, PyObject **given, Py_ssize_t count)

They do what the methods in `tape/grad_mode.py` do where the context was switched before and nothing else has changed
it meanwhile; else they call those. `install` puts them there once native code runs, where slots are found as they must
be and `type` says that it calls classes by the function that stands at a place of theirs.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from dy2st.ir.context import Context
from dy2st.runtime.aot_cache.artifacts import Product
from dy2st.runtime.backends.cpu.compile_link.code_loader import named_product
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.trampolines.methods import OWN, loaded
from dy2st.runtime.backends.cpu.trampolines.object_layout import maker, places, word
from dy2st.runtime.eager.tape.grad_mode import ENTER, EXIT, GradMode, enable_grad, no_grad

CONTEXT, OFF, ON, NOTHING, NEW, NEW_OFF, NEW_ON, BY_ENTER, BY_EXIT, SWITCHED, GRAD, CHANGES = range(OWN, OWN + 96, 8)
"""Words of the plate: objects, functions of Python, and where slots stand."""
_VECTORCALL_OFFSET = 56
"""Where a type says at which place its instances have the function that calls them."""
PLATE = "dy2st.external.grad.plate"


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
    code = loaded(product(), PLATE, words, (objects, methods))
    enter = api.method(GradMode, code.address("dy2st.grad.enter"), "__enter__", api.NO_ARGUMENTS)
    leave = api.method(GradMode, code.address("dy2st.grad.exit"), "__exit__", api.ROW_OF_ARGUMENTS)
    for name, made in {"__enter__": enter, "__exit__": leave}.items():
        setattr(GradMode, name, made)
    for kind in (no_grad, enable_grad):
        ctypes.c_void_p.from_address(id(kind) + at).value = code.address("dy2st.grad.make")
    return True


def product() -> Product:
    """Return this code, not yet loaded."""

    def write() -> str:
        from dy2st.runtime.backends.cpu.trampolines.method_ir import switch_text

        return switch_text()

    return named_product("grad switch", write, level=0)


def _vectorcall_place() -> int | None:
    """Return where a class has the function that makes its instances; None where this Python has it in another way."""
    at = word(id(type) + _VECTORCALL_OFFSET)
    size: Any = type.__basicsize__
    if at % 8 or not 2 * _VECTORCALL_OFFSET < at < size:
        return None
    known = all(word(id(kind) + at) for kind in (list, dict, tuple, type))
    return at if known and not any(word(id(kind) + at) for kind in (object, no_grad, enable_grad)) else None
