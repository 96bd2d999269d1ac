"""Machine code for `StaticFunction.__call__`: a call like the last one goes to what recognises it, and nothing between.

    PyObject *call(PyObject *self, PyObject **given, Py_ssize_t count, PyObject *names)

A function keeps in a slot what its last call was recognised by: what of the context decides (`MODES`), the number of
arguments, the function that recognises such calls (inline_cache.py) and its Program. Where nothing is traced, the
context has the same objects, Programs are not turned off and as many arguments are given by position, that function is
called. Where it says that this is another call, and for all others, the method in Python does it.

The code has no owner as a builtin function has one, so its plate is a symbol, which stands for the array object of the
plate: behind what other plates have (entry.py) come words of its own, the variable of the current context first.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dy2st.ir.context import _CURRENT, Context, Process  # pyright: ignore[reportPrivateUsage]
from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.compile_link.code_loader import load, named_product, provide
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.trampolines.object_layout import places

MODES = ("grad", "amp", "checkpoint", "process")
"""What of a context decides what a call is recognised by, in this order."""
VARIABLE, CALL, UNSEEN, ENABLED, LIKE, LAST, TRACE, FIRST_MODE = range(api.BEHIND, api.BEHIND + 64, 8)
PLATE = "dy2st.external.static.plate"


@functools.cache
def install(kind: type[Any], like: str, last: str, unseen: object) -> bool:
    """Let machine code make calls of the instances of a class from now on; return whether it does.

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
    plate = np.array([0, 0, *api.addresses(), id(_CURRENT), *words], np.int64)
    api.keep_for_good((plate, call, unseen))
    provide(PLATE, lambda: id(plate))
    code = load(product().binary)
    name, flags = "__call__", api.ROW_OF_ARGUMENTS | api.KEYWORDS
    setattr(kind, name, api.method(kind, code.address("dy2st.static.call"), name, flags))
    return True


def product() -> Artifact:
    """Return this code, not yet loaded."""

    def write() -> str:
        from dy2st.runtime.backends.cpu.trampolines.static_function_ir import static_text

        return static_text()

    return named_product("static calls", write, level=0)
