"""The pool of threads as Python sees it: how many there are to be, what happens at a fork and when the process ends.

Workers are made by the first kernel that is worth being shared (job_scheduling.py). They hold no Python object and
never take Python's lock, so nothing here waits for them but the end of the process and a change of their number.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import platform
import sys
import threading
import time

from dy2st.records import field, record
from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.backends.cpu.compile_link.code_loader import LoadedCode, load, named_product, provide
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_threads
from dy2st.runtime.backends.cpu.compile_link.image_loader import libc_address
from dy2st.runtime.backends.cpu.thread_pool.memory_layout import BYTES, FIELDS, MOST


@record
class _Wanted:
    """How many threads there are to be; None where nobody has said."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: int | None = None


_wanted = _Wanted()
CALLED = (
    "PyEval_RestoreThread", "PyEval_SaveThread", "PyGILState_Check", "PyGILState_GetThisThreadState",
    "PyThread_exit_thread", "clock_gettime", "pthread_create", "pthread_getaffinity_np", "pthread_join", "pthread_self",
    "pthread_setaffinity_np", "pthread_sigmask", "sched_getcpu", "sched_yield", "syscall",
)  # fmt: skip
"""What the module calls of Python and of the C library, or one for another system does."""
_PATIENCE = 1.0
"""How many seconds the end of the process waits for a job that others run."""


def get_num_threads() -> int:
    """Return how many threads native code uses at most.

    It is what `set_num_threads` was told, else what the environment variable `DY2ST_NUM_THREADS` or `OMP_NUM_THREADS`
    says, else how many CPUs this process may use.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        If `DY2ST_NUM_THREADS` is no whole number of at least 1.

    Examples
    --------
    >>> import dy2st as paddle
    >>> paddle.get_num_threads() >= 1
    True
    """
    if _wanted.threads is None:
        _wanted.threads = min(MOST, usable_threads())
    return _wanted.threads


def set_num_threads(num_threads: int) -> None:
    """Say how many threads native code uses at most, the one that calls it included.

    Results are the same bits for any number. Small kernels stay on one thread.

    Parameters
    ----------
    num_threads : int
        At least 1. More than the CPUs that the process may use only helps to test.

    Raises
    ------
    TypeError
        If `num_threads` is no int.
    ValueError
        If it is below 1.

    Examples
    --------
    >>> import dy2st as paddle
    >>> before = paddle.get_num_threads()
    >>> paddle.set_num_threads(1)
    >>> paddle.get_num_threads()
    1
    >>> paddle.set_num_threads(before)
    """
    if isinstance(num_threads, bool) or not isinstance(num_threads, int):
        raise TypeError(f"num_threads is an int, not {type(num_threads).__name__}")
    if num_threads < 1:
        raise ValueError(f"num_threads is at least 1, not {num_threads}")
    with _wanted.lock:
        _wanted.threads = min(MOST, num_threads)
        if _code.cache_info().currsize:
            _set(get_num_threads())


@functools.cache
def _code() -> LoadedCode:
    """Return the pool's code, compiled and loaded once."""
    for name in CALLED:
        provide(f"dy2st.external.{name}", functools.partial(_external, name))
    return load(product().binary)


def product() -> Artifact:
    """Return the pool's code, not yet loaded."""

    def write() -> str:
        from dy2st.runtime.backends.cpu.thread_pool.module import pool_text

        return pool_text(sys.platform, platform.machine())

    return named_product("pool", write, level=0)


def _external(name: str) -> int:
    if not name.startswith("Py"):
        return libc_address(name)
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@functools.cache
def _ready() -> LoadedCode:
    """Return the pool's code when the pool knows how many threads it is to have."""
    code = _code()
    _set(get_num_threads())
    os.register_at_fork(after_in_child=_forget)
    atexit.register(_end)
    return code


def _set(threads: int) -> None:
    """End the workers that there are; the next kernel that is worth it makes new ones."""
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(_code().address("dy2st.pool.set"))(threads)


def _forget() -> None:
    """Forget the workers in a forked process, which has none of them."""
    address = _pool()
    if address is None:
        return
    threads = _field(address, "threads").value
    ctypes.memset(address, 0, BYTES)
    _field(address, "threads").value = threads


def _end() -> None:
    """End the workers when the process ends; those that a daemon thread keeps at work for long, the system ends."""
    address = _pool()
    if address is None:
        return
    _field(address, "threads").value = 1  # who comes now works alone
    busy, until = _field(address, "busy"), time.monotonic() + _PATIENCE
    while busy.value and time.monotonic() < until:
        time.sleep(0.001)
    if not busy.value:
        _set(1)


def _pool() -> int | None:
    """Return where the fields of the pool stand."""
    return ctypes.CFUNCTYPE(ctypes.c_void_p)(_code().address("dy2st.pool"))()


def _field(address: int, name: str) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address + FIELDS[name])


def _address(name: str) -> int:
    return _ready().address(name)


for _name in ("parallel", "share", "take_lock", "threads"):
    provide(f"dy2st.{_name}", functools.partial(_address, f"dy2st.pool.{_name}"))
