"""Memory of the stand-in for a device: each allocation on pages of its own, behind which nothing may be read.

A kernel that reads or writes outside of an allocation, or in one that has been freed, ends the process, as an illegal
access on a device ends its context. (In front of an allocation are the unused bytes of its first page.)
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import mmap
import weakref
from collections import deque
from typing import Any

from dy2st.forks import Locked
from dy2st.records import record

_ALIGNED = 16
"""Bytes: what kernels may count on, and how far behind its end an allocation may still be read."""
_KEPT = 512
"""How many freed allocations are kept from use."""
_NONE, _READ_WRITE = 0, 3
_FAILED = 2**64 - 1


@record
class Statistics:
    """What was done since the process began."""

    host_reads: int = 0
    """How often the host waited for a value."""
    launches: int = 0
    copied_in: int = 0
    """How often an array came from the host."""


STATISTICS = Statistics()


class Memory:
    """One allocation: `ptr` is the address, `size` the bytes asked for."""

    __slots__ = ("__weakref__", "ptr", "size")

    def __init__(self, size: int):
        page = mmap.PAGESIZE
        whole = -(-max(size, 1) // page) * page
        start = _libc().mmap(None, whole + page, _READ_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if start == _FAILED:
            raise MemoryError(f"the emulated device has no {size} bytes left")
        _libc().mprotect(start + whole, page, _NONE)
        self.ptr = start + whole - -(-size // _ALIGNED) * _ALIGNED
        self.size = size
        LIVE.enter(self)
        weakref.finalize(self, LIVE.free, self.ptr, start, whole + page).atexit = False

    @property
    def mem(self) -> Memory:
        """What owns the memory, as CuPy's pointers tell."""
        return self


class _Live(Locked):
    """The allocations that are in use, by address."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        self._known: dict[int, weakref.ref[Memory]] = {}
        self._freed: deque[tuple[int, int]] = deque()

    def enter(self, memory: Memory) -> None:
        """Take in an allocation."""
        with self._lock:
            bisect.insort(self._starts, memory.ptr)
            self._known[memory.ptr] = weakref.ref(memory)

    def free(self, ptr: int, start: int, length: int) -> None:
        """Let an allocation go: its pages cannot be read until many more have gone."""
        with self._lock:
            del self._starts[bisect.bisect_left(self._starts, ptr)], self._known[ptr]
            _libc().mprotect(start, length, _NONE)
            self._freed.append((start, length))
            if len(self._freed) > _KEPT:
                _libc().munmap(*self._freed.popleft())

    def find(self, address: int) -> Memory | None:
        """Return the allocation that an address is in."""
        with self._lock:
            at = bisect.bisect_right(self._starts, address) - 1
            found = self._known[self._starts[at]]() if at >= 0 else None
        return found if found is not None and address <= found.ptr + found.size else None


LIVE = _Live()


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_uint64
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc
