"""What native code depends on beside what it is made from: this package, LLVM, the CPU, Python and NumPy.

All of it is read from files, so that it is known before LLVM is loaded, which takes longer than everything else here.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Iterator

import numpy as np

from dy2st.runtime import cpu
from dy2st.runtime.cpu.guarded_blocks import are_guarded

_SOURCES = ("ir", "ops", "passes", "runtime")
"""The folders of this package that decide what code is made of a Program."""
_PER_CPU = ("mhz", "bogomips", "processor", "apicid", "core id", "physical id")
"""Lines that differ between the CPUs of a machine, or from one moment to the next."""


def identity() -> str:
    """Return a text that differs where native code may differ."""
    return f"{_fixed()} {os.environ.get('DY2ST_CPU', '')}{' guarded' * are_guarded()}"


def llvm_folder() -> str | None:
    """Return where llvmlite is installed, without importing it; None where it is not."""
    try:
        found = importlib.util.find_spec("llvmlite")
    except ValueError:  # somebody has put a module without a spec, or None, into sys.modules
        return None
    return None if found is None or found.origin is None else os.path.dirname(found.origin)


@functools.cache
def _fixed() -> str:
    """Return what stays the same while this process runs."""
    package, llvm = os.path.dirname(__file__).removesuffix(os.path.join("runtime", "cpu")), llvm_folder()
    parts = [sys.version, np.__version__, platform.machine(), sys.platform, _cpu()]
    files = [file for name in _SOURCES for file in _files(os.path.join(package, name))]
    if any(cpu.STARTED < file.written <= time.time() for file in files):
        parts.append(f"only this process has what stood there before: {os.getpid()} {cpu.STARTED}")
    if llvm is not None:
        files += _files(os.path.join(llvm, "binding"))
    parts += sorted(map(str, files))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class _File:
    """A file of code: its name, its size and when it was written, in seconds."""

    __slots__ = ("name", "size", "written")

    def __init__(self, name: str, size: int, written: float):
        self.name, self.size, self.written = name, size, written

    def __str__(self) -> str:
        return f"{self.name} {self.size} {self.written!r}"


def _files(folder: str) -> Iterator[_File]:
    """Yield every file of code in a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith((".py", ".so", ".dylib", ".dll")):
                said = entry.stat()
                yield _File(entry.name, said.st_size, said.st_mtime)


def _cpu() -> str:
    """Return what the system says of the first CPU."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read().partition("\n\n")[0]
    except OSError:
        return platform.processor()
    lines = (line for line in text.splitlines() if not any(word in line.lower() for word in _PER_CPU))
    return "\n".join(lines)
