"""Files that are written whole or not at all.

A file is written under another name and then renamed. Who writes one holds a lock on it, so what a process that was
killed left behind is told from what another process is still writing: it goes when the file is written again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None

_SUFFIX = ".tmp"
_DIGITS = 16
_LONG_AGO = 3600.0
"""How many seconds a file was not written to that is taken for left behind, where there are no locks."""


def replace(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write `parts` to `path`, whole or not at all."""
    with replacing(path) as out:
        for part in parts:
            out.write(part)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], named_after: Path | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing: under a temporary name in the same folder, at the end brought to the disk and renamed.

    When anything fails, what was at `path` is still there, unchanged, and the temporary file is gone. Its name is made
    of that of another file of the folder where one is given.
    """
    target = Path(os.path.realpath(path))
    _remove_left_over(named_after or target)
    temporary, handle = _created(named_after or target)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
            if fcntl is not None:
                os.replace(temporary, target)  # while the lock is held
        if fcntl is None:
            os.replace(temporary, target)  # Windows renames no open file
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep out other processes that lock the same folder; where a file system has no such locks, nobody is."""
    handle = None if fcntl is None else os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None and handle is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _remove_left_over(target: Path) -> None:
    """Remove what killed processes left of writing a file."""
    beginning = _beginning(target)
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            middle = entry.name[len(beginning) : -len(_SUFFIX)]
            if entry.name == f"{beginning}{middle}{_SUFFIX}" and len(middle) == _DIGITS:
                with contextlib.suppress(OSError):  # another process has removed it
                    _remove_abandoned(entry.path)


def _remove_abandoned(path: str) -> None:
    """Remove a temporary file that nobody is writing."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(handle)
    if fcntl is None and time.time() - os.stat(path).st_mtime > _LONG_AGO:
        os.unlink(path)


def _beginning(target: Path) -> str:
    return f".{target.name[:100]}."


def _created(target: Path) -> tuple[Path, int]:
    """Create a temporary file for a target and lock it; another process may take it for left behind just before."""
    while True:
        path = target.with_name(f"{_beginning(target)}{secrets.token_hex(_DIGITS // 2)}{_SUFFIX}")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            if fcntl is None:
                return path, handle
            with contextlib.suppress(OSError):  # a file system without locks; nobody else gets one either
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.exists(path):
                return path, handle
        except BaseException:
            os.close(handle)
            path.unlink(missing_ok=True)
            raise
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Bring the new name to the disk; Windows has no such call and needs none."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
