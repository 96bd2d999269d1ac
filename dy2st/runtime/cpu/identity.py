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
from collections.abc import Iterator

import numpy as np

_SOURCES = ("ir", "ops", "passes", "runtime")
"""The folders of this package that decide what code is made of a Program."""
_PER_CPU = ("mhz", "bogomips", "processor", "apicid", "core id", "physical id")
"""Lines that differ between the CPUs of a machine, or from one moment to the next."""


def identity() -> str:
    """Return a text that differs where native code may differ."""
    return f"{_fixed()} {os.environ.get('DY2ST_CPU', '')}"


def llvm_folder() -> str | None:
    """Return where llvmlite is installed, without importing it; None where it is not."""
    try:
        found = importlib.util.find_spec("llvmlite")
    except ValueError:  # somebody has put a module without a spec, or None, into sys.modules
        return None
    return None if found is None or found.origin is None else os.path.dirname(found.origin)


@functools.cache
def _fixed() -> str:
    package, llvm = os.path.dirname(__file__).removesuffix(os.path.join("runtime", "cpu")), llvm_folder()
    parts = [sys.version, np.__version__, platform.machine(), sys.platform, _cpu()]
    for folder in (
        *(os.path.join(package, name) for name in _SOURCES),
        *([os.path.join(llvm, "binding")] if llvm else []),
    ):
        parts.extend(sorted(_files(folder)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _files(folder: str) -> Iterator[str]:
    """Yield every file of code in a folder: its name, its size and when it was written."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith((".py", ".so", ".dylib", ".dll")):
                said = entry.stat()
                yield f"{entry.name} {said.st_size} {said.st_mtime_ns}"


def _cpu() -> str:
    """Return what the system says of the first CPU."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read().partition("\n\n")[0]
    except OSError:
        return platform.processor()
    lines = (line for line in text.splitlines() if not any(word in line.lower() for word in _PER_CPU))
    return "\n".join(lines)
