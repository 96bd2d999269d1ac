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
from collections.abc import Iterable

import numpy as np

from dy2st import config
from dy2st.runtime.aot_cache import STARTED

_SOURCES = ("ir", "ops", "passes", "runtime")
"""The folders of this package that decide what code is made of a Program."""
_CODE = (".py", ".so", ".dylib", ".dll")
_File = tuple[str, int, int]
"""A file of code: its name, its size and when it was written, in nanoseconds."""
_PER_CPU = ("mhz", "bogomips", "processor", "apicid", "core id", "physical id")
"""Lines that differ between the CPUs of a machine, or from one moment to the next."""


def identity() -> str:
    """Return a text that differs where native code may differ."""
    return f"{_fixed()} {config.forced_cpu() or ''}{' guarded' * config.are_guarded()}"


def llvm_folder() -> str | None:
    """Return where llvmlite is installed; None where it is not."""
    return folder_of("llvmlite")


def folder_of(package: str) -> str | None:
    """Return where a package is installed, without importing it; None where it is not."""
    try:
        found = importlib.util.find_spec(package)
    except ValueError:  # somebody has put a module without a spec, or None, into sys.modules
        return None
    return None if found is None or found.origin is None else os.path.dirname(found.origin)


def state_of(places: Iterable[str]) -> list[str]:
    """Return texts that differ where files of code, and those in folders, are not what they were.

    What changed while this process runs is not what runs here, so nobody else may have the same texts then.
    """
    files = sorted([file for place in places for file in _files(place)])
    texts = [f"{name} {size} {written}" for name, size, written in files]
    started, now = int(STARTED * 1e9), time.time_ns()
    if any(started < written <= now for _, _, written in files):
        texts.append(f"only this process has what stood there before: {os.getpid()} {STARTED}")
    return texts


@functools.cache
def _fixed() -> str:
    """Return what stays the same while this process runs."""
    package, llvm = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir), llvm_folder()
    parts = [sys.version, np.__version__, platform.machine(), sys.platform, _cpu()]
    parts += state_of(os.path.join(package, name) for name in _SOURCES)
    if llvm is not None:
        parts += map(str, sorted(_files(os.path.join(llvm, "binding"))))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _files(place: str) -> list[_File]:
    """Return every file of code in a folder, or the one that this is; none where there is neither."""
    try:
        names = os.listdir(place)
    except NotADirectoryError:
        said = os.stat(place)
        return [(os.path.basename(place), said.st_size, said.st_mtime_ns)]
    except FileNotFoundError:
        return []
    found: list[_File] = []
    for name in names:  # looking at an entry of `os.scandir` takes twice as long
        if name.endswith(_CODE):
            said = os.stat(f"{place}/{name}")
            found.append((name, said.st_size, said.st_mtime_ns))
        elif "." not in name and name != "__pycache__":
            inner = os.path.join(place, name)
            if os.path.isdir(inner) and not os.path.islink(inner):
                found += _files(inner)
    return found


def _cpu() -> str:
    """Return what the system says of the first CPU."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read().partition("\n\n")[0]
    except OSError:
        return platform.processor()
    lines = (line for line in text.splitlines() if not any(word in line.lower() for word in _PER_CPU))
    return "\n".join(lines)
