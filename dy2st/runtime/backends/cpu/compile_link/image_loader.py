"""Images of machine code brought into memory, ready to run.

What many share stays until the process has ended: arrays that are given back when Python itself ends still call it. So
that memory belongs to no Python object. The code of one Program belongs to an object, which everything holds that may
run it: the function that Python calls holds it while it runs, on whichever thread, and the pool's workers have left a
job when the function that gave it to them goes on. Its memory is given back with the object, and not when the process
ends, which would be work for nothing.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Any

from dy2st.records import field, record
from dy2st.runtime.aot_cache.code_image import CodeImage

_ADDRESS = struct.Struct("<Q")


@record
class LoadedCodeSize:
    """How much machine code is in memory, that of LLVM's own loader apart."""

    images: int = 0
    bytes: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    """May be asked for again while it is held: collecting garbage gives memory back."""

    def add(self, images: int, size: int) -> None:
        """Count images that come or go."""
        with self.lock:
            self.images += images
            self.bytes += size


loaded = LoadedCodeSize()


class ImageMemory:
    """Holds the memory of an image: it is given back when this is gone."""


def load_image(image: CodeImage, find: Callable[[str], int], owner: ImageMemory | None = None) -> dict[str, int]:
    """Bring an image into memory; return where its functions stand. `find` gives addresses of functions of others.

    The memory is given back with its `owner`; without one it stays until the process has ended.

    OSError where there is no memory, or where the system lets nobody run what was written.
    """
    content = bytearray(image.content)
    for name, slot in image.slots.items():
        _ADDRESS.pack_into(content, slot, find(name))
    base = _mapped(len(content))
    for at, place in image.addresses:
        _ADDRESS.pack_into(content, at, base + place)
    ctypes.memmove(base, (ctypes.c_char * len(content)).from_buffer(content), len(content))
    if image.writable:
        _check(_libc().mprotect(ctypes.c_void_p(base), image.writable, mmap.PROT_READ | mmap.PROT_EXEC))
    loaded.add(1, len(content))
    if owner is not None:
        weakref.finalize(owner, _give_back, base, len(content)).atexit = False
    return {name: base + at for name, at in image.symbols.items()}


def _give_back(base: int, size: int) -> None:
    _check(_libc().munmap(ctypes.c_void_p(base), ctypes.c_size_t(max(1, size))))
    loaded.add(-1, -size)


def _mapped(size: int) -> int:
    """Return the address of new memory; a forked process has a copy of it."""
    kind, access = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
    found = _libc().mmap(None, ctypes.c_size_t(max(1, size)), access, kind, -1, ctypes.c_long(0))
    _check(-1 if found == ctypes.c_void_p(-1).value else 0)
    return int(found)


def _check(status: int) -> None:
    if status:
        error = ctypes.get_errno()
        raise OSError(error, f"no memory for code: {os.strerror(error)}")


def libc_address(name: str) -> int:
    """Return where a function of the C library stands; KeyError where it has none of that name."""
    try:
        return ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise KeyError(name) from None


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    return libc
