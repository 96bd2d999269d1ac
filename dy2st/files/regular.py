"""Files as they are read: regular ones, copied into memory of this process, never mapped.

Who maps a file has whatever stands in it later: the process is killed by SIGBUS where somebody cuts the file short, and
weights change where another is copied over it. What was read stays what it was when its checksum was taken.

What a file says is checked before anything is made of it, and what comes out of a loader for a damaged one is a
FileFormatError, whatever it was inside.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from dy2st.errors import FileFormatError
from dy2st.runtime.memory_budget import memory_of_machine


@contextlib.contextmanager
def errors_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in what is raised for its content, and have it be a FileFormatError."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: the file is damaged ({type(error).__name__}: {error})") from error


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file; yield it with its size.

    A pipe or a device is refused without waiting for it, and so is a file that this machine's memory cannot hold, as
    one may be that consists of holes. OSError where there is none or it cannot be read.
    """
    with open(path, "rb", opener=_open) as file:
        said = os.fstat(file.fileno())
        if not stat.S_ISREG(said.st_mode):
            raise FileFormatError("it is a pipe or a device, not a file")
        if said.st_size > memory_of_machine():
            raise FileFormatError(f"it has {said.st_size} bytes, this machine's memory {memory_of_machine()}")
        yield file, said.st_size


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
