"""Object files that LLVM made in earlier runs: the same text gives the same object, and making it is a third of a run.

Only what LLVM itself does is left out. Programs are traced, changed, lowered and written as text anew, and what dy2st
keeps for later processes is in a folder of the run. `--new-objects` has LLVM make all again.
"""

import hashlib
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from dy2st.runtime.aot_cache.disk_cache import shrink
from dy2st.runtime.backends.cpu.compile_link import code_loader, compiler
from dy2st.runtime.backends.cpu.compile_link.compiler import TargetMachine

MOST_BYTES = 2**29


class Objects:
    """Compiles text to objects, and keeps them in a folder."""

    def __init__(self, folder: Path, compiled: Callable[..., bytes]):
        self._folder, self._compiled = folder, compiled

    def compiled(self, text: str, machine: TargetMachine, passes: Sequence[str], *, readable: bool = False) -> bytes:
        """Return what LLVM makes of a text: from the folder, or made now."""
        made_of = (*llvm(), machine, tuple(passes), readable, text)
        file = self._folder / f"{hashlib.sha256(repr(made_of).encode()).hexdigest()}.o"
        known = _read(file)
        if known is None:
            known = self._compiled(text, machine, passes, readable=readable)
            _write(file, known)
        return known

    def shrink(self) -> None:
        """Remove what was not used for longest, where there is too much."""
        if self._folder.is_dir():
            shrink(str(self._folder), MOST_BYTES)


@cache
def llvm() -> tuple[Any, ...]:
    """Return what decides what LLVM is and how it is called: where that changes, objects are made anew."""
    return metadata.version("llvmlite"), compiler.version(), Path(compiler.__file__).read_bytes()


def keep(folder: Path) -> Objects:
    """Have all code of this process compiled through a folder."""
    objects = Objects(folder, code_loader.compiled)
    code_loader.compiled = objects.compiled
    return objects


def _read(file: Path) -> bytes | None:
    """Return what was written to a file; None where there is none, or it is broken."""
    try:
        content = zlib.decompress(file.read_bytes())
        os.utime(file)  # `shrink` goes by it
    except (OSError, zlib.error):
        return None
    return content


def _write(file: Path, content: bytes) -> None:
    """Keep an object. A checkout that cannot be written to keeps none: this only saves time."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
        part.write_bytes(zlib.compress(content, 1))
        part.replace(file)
