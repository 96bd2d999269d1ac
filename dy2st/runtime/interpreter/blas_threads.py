"""Threads of NumPy's products: one while a Program runs operation by operation, before its native code is there.

The threads of OpenBLAS wait for each other by giving the CPU away again and again. Beside another busy process each
product then takes some time slices, and a Program has hundreds of products: 5.7 s where one thread took 0.4.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.forks import Locked


class _Askers(Locked):
    """How many want products to take one thread, and how many threads they took before the first."""

    def __init__(self) -> None:
        super().__init__()
        self._count, self._before = 0, 1

    def add(self, count: int) -> None:
        found = _functions()
        if found is None:
            return
        get, set_to = found
        with self._lock:
            if not self._count:
                self._before = get()
                set_to(1)
            self._count += count
            if not self._count:
                set_to(self._before)

    def forget(self) -> None:
        """Leave for threads that a new process has not."""
        if self._count:
            self.add(-self._count)


@functools.cache
def _functions() -> tuple[Any, Any] | None:
    """Return what says and what sets how many threads OpenBLAS takes, where NumPy brings it along."""
    folder = Path(np.__file__).parent
    for path in (*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(path))
            return library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
    return None


_askers = _Askers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_askers.forget)


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Let products take one thread; when the last of those who asked for that is done, it is as it was."""
    _askers.add(1)
    try:
        yield
    finally:
        _askers.add(-1)
