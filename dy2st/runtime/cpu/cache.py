"""Object files on disk, by the hash of what they were made from; any number of processes may share a folder.

`DY2ST_CACHE_DIR` names the folder (an empty text: none); the default is `dy2st` in the user's cache folder. A file is
written under another name and then renamed, and carries the hash of its content: one that is cut short or changed is
made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST = 32


def folder() -> Path | None:
    """Return the folder of the cache, None where there is to be none."""
    chosen = os.environ.get("DY2ST_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "dy2st"
    except RuntimeError:  # no home
        return None


def read(key: str) -> bytes | None:
    """Return what was written under a key, None where there is nothing that can be trusted."""
    at = folder()
    if at is None:
        return None
    try:
        data = (at / f"{key}.o").read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None


def write(key: str, content: bytes) -> None:
    """Keep content under a key. A folder that cannot be written to keeps nothing: the cache only saves time."""
    at = folder()
    if at is None:
        return
    with contextlib.suppress(OSError):
        at.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=at, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            Path(name).replace(at / f"{key}.o")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
