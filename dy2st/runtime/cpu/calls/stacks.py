"""How far the calls of a recursion may go on the stack of the thread that they run on.

i64 @dy2st.lowest(i64 %here)        the lowest address that calls may reach which begin at another one

A run asks once, when its first function calls another. Threads have as much stack as `threading.stack_size` said when
they began, 8 MiB or 200 KiB; what is left is for kernels, and for Python where it is called back.
"""

from __future__ import annotations

import ctypes
import threading

from dy2st.runtime.cpu.machine_code.engine import provide

MOST_STACK = 256 * 1024
"""How many bytes of stack calls may use."""
_LEFT = 80 * 1024
"""How many bytes they leave."""
_own = threading.local()


def _lowest_of_thread() -> int:
    """Return where the stack of this thread ends; 0 where that is not known, or far away as for the main thread."""
    libc = ctypes.CDLL(None)
    me = threading.get_ident()
    if me == threading.main_thread().ident or not hasattr(libc, "pthread_getattr_np"):
        return 0
    attributes, lowest, size = (ctypes.c_uint64 * 16)(), ctypes.c_size_t(), ctypes.c_size_t()
    if libc.pthread_getattr_np(ctypes.c_size_t(me), attributes):
        return 0
    libc.pthread_attr_getstack(attributes, ctypes.byref(lowest), ctypes.byref(size))
    libc.pthread_attr_destroy(attributes)
    return lowest.value


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def _lowest(here: int) -> int:
    if not hasattr(_own, "lowest"):
        _own.lowest = _lowest_of_thread()
    return max(here - MOST_STACK, _own.lowest + _LEFT if _own.lowest else 0)


provide("dy2st.lowest", lambda: ctypes.cast(_lowest, ctypes.c_void_p).value or 0)
