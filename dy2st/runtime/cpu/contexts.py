"""Contexts of native runs: the memory that a run allocates from. One run has a context at a time; they are used again."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.runtime.cpu import blas
from dy2st.runtime.cpu.engine import compile_text
from dy2st.runtime.cpu.host import entry_address
from dy2st.runtime.cpu.blas import FUNCTIONS
from dy2st.runtime.cpu.memory import ALLOCATE, BLAS, BLOCKS, CONTEXT_BYTES, DECLARED, DEPTH, HOST, PRELUDE

_EXPORTS = """
define ptr @dy2st.export.allocate(ptr %context, i64 %bytes) {
  %block = call ptr @dy2st.allocate(ptr %context, i64 %bytes)
  ret ptr %block
}
"""


@functools.cache
def _allocate_function() -> ctypes._CFunctionType:  # pyright: ignore[reportPrivateUsage]
    code = compile_text(DECLARED + PRELUDE + _EXPORTS)
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return kind(code.address("dy2st.export.allocate"))


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class Context:
    """The memory of one run at a time."""

    def __init__(self) -> None:
        self._memory = (ctypes.c_uint64 * (CONTEXT_BYTES // 8))()
        self.address = ctypes.addressof(self._memory)
        self._memory[HOST // 8] = entry_address()
        allocate = ctypes.cast(_libc().aligned_alloc, ctypes.c_void_p).value
        self._memory[ALLOCATE // 8] = allocate or 0
        self._blas = (ctypes.c_uint64 * len(FUNCTIONS))(*(blas.address(name) or 0 for name in FUNCTIONS))
        self._memory[BLAS // 8] = ctypes.addressof(self._blas)

    def __setitem__(self, field: int, value: int) -> None:
        self._memory[field // 8] = value

    def allocate(self, size: int) -> int:
        """Return the address of a new block; MemoryError when there is none."""
        block = _allocate_function()(self.address, size)
        if not block:
            raise MemoryError(f"no memory for {size} bytes")
        return int(block)

    def close(self) -> None:
        """Give all memory back."""
        block = self._memory[BLOCKS // 8]
        free = _libc().free
        while block:
            following = ctypes.c_uint64.from_address(block + 24).value
            free(ctypes.c_void_p(block))
            block = following
        self._memory[BLOCKS // 8] = 0

    def __del__(self) -> None:
        self.close()


class Contexts:
    """Contexts that are free; safe to use from several threads."""

    def __init__(self) -> None:
        self._free: list[Context] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Context]:
        """Lend a context; after an error its memory is given back, because some of it may still count holders."""
        with self._lock:
            context = self._free.pop() if self._free else Context()
        context[DEPTH] = 0
        try:
            yield context
        except BaseException:
            context.close()
            raise
        with self._lock:
            self._free.append(context)
