"""Images of machine code brought into memory, ready to run. What is loaded stays: another thread may be running it."""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dy2st.runtime.cpu.elf import Image

_ADDRESS = struct.Struct("<Q")


@dataclass
class _Loaded:
    maps: list[mmap.mmap] = field(default_factory=list[mmap.mmap])


_loaded = _Loaded()


def load_image(image: Image, find: Callable[[str], int]) -> dict[str, int]:
    """Bring an image into memory; return where its functions stand. `find` gives addresses of functions of others.

    OSError where the system lets nobody run what was written.
    """
    own = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # a forked process writes into a copy
    memory = mmap.mmap(-1, max(1, len(image.content)), flags=own)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory[: len(image.content)] = image.content
    for name, slot in image.slots.items():
        _ADDRESS.pack_into(memory, slot, find(name))
    for at, place in image.addresses:
        _ADDRESS.pack_into(memory, at, base + place)
    if image.writable and _libc().mprotect(ctypes.c_void_p(base), image.writable, mmap.PROT_READ | mmap.PROT_EXEC):
        error = ctypes.get_errno()
        raise OSError(error, "code may not be run")
    _loaded.maps.append(memory)
    return {name: base + at for name, at in image.symbols.items()}


def libc_address(name: str) -> int:
    """Return where a function of the C library stands; KeyError where it has none of that name."""
    try:
        return ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        raise KeyError(name) from None


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
