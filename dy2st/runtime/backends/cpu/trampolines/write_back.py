"""Machine code that writes what a call leaves behind: next values of parameters and of what an optimizer keeps.

    PyObject *dy2st.written(PyObject *plate, PyObject **given, Py_ssize_t count)

`given` is the list of results. A tensor that nobody shares gets its array; one that has a version, because it may have
views, goes to a function of Python with the array. A step of an optimizer writes some hundreds of them.

The plate has, behind what other plates have (entry.py):

    the function of Python   where a tensor has its array, its version and its gradient   how many lines
    a line for each write: the tensor, and the number of the result, -1 for no gradient
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.compile_link.code_loader import load, named_product
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.trampolines import call
from dy2st.runtime.backends.cpu.trampolines.object_layout import places
from dy2st.runtime.eager.tensor import Tensor

NO_GRADIENT = -1
SHARED, ARRAY, VERSION, GRADIENT, COUNT, LINES = range(api.BEHIND, api.BEHIND + 48, 8)


def known_writes(writes: Sequence[tuple[Tensor, int]], shared: Callable[[Tensor, Any], None]) -> Any:
    """Return the function that takes a list of results and makes these writes; None where Python has to do it.

    A write is a tensor and the number of a result, or `NO_GRADIENT`; `shared` writes one that has a version.
    """
    at = places(Tensor) if call.is_loaded() else None
    if at is None:
        return None
    where = [id(shared), at["payload"], at["storage_version"], at["_grad"], len(writes)]
    lines = [word for t, number in writes for word in (id(t), number)]
    plate = np.array([0, 0, *api.addresses(), *where, *lines], np.int64)
    return api.builtin_function(_address(), "dy2st", plate, (shared, writes))


@functools.cache
def _address() -> int:
    """Return where the code stands, which is loaded once."""
    return load(product().binary).address("dy2st.written")


def product() -> Artifact:
    """Return this code, not yet loaded."""

    def write() -> str:
        from dy2st.runtime.backends.cpu.trampolines.call_ir import written_text

        return written_text()

    return named_product("known writes", write, level=0)
