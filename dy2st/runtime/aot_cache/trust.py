"""Whose the files of code on disk are: what is read of them is run, so only this user and root may have written them.

A folder or file that belongs to somebody else, or that its group or everybody may write to, is not used; one warning
says so. A file is looked at once it is open, so that nothing can be put in its place between looking and reading: a
link, a pipe or a device is none, and neither is a file that is larger than any that is written.
"""

from __future__ import annotations

import os
import stat
import warnings

MOST_BYTES = 64 * 2**20
"""How many bytes a file has at most: to read a larger one takes longer than what it saves."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_warned: set[str] = set()


def is_own_folder(path: str) -> bool:
    """Return whether a folder is there that nobody else can have put something into; warn where others can."""
    try:
        said = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISDIR(said.st_mode):
        return False
    problem = _problem(said)
    if problem is not None:
        warn_once(
            f"{path} is not used to keep code: {problem}, and what is in it would be run. Make it your own and "
            "`chmod go-w` it, or name another folder by DY2ST_CACHE_DIR (an empty text: none)"
        )
    return problem is None


def content(path: str) -> tuple[bytes, float] | None:
    """Return what is in a file, and when it was last marked as used; None for what nobody should have put there."""
    handle = os.open(path, _FLAGS)
    with os.fdopen(handle, "rb") as file:
        said = os.fstat(handle)
        if not stat.S_ISREG(said.st_mode) or said.st_size > MOST_BYTES:
            return None
        problem = _problem(said)
        if problem is not None:
            warn_once(f"{path} is not run: {problem}")
            return None
        return file.read(said.st_size), said.st_mtime  # more would be room for a file that is no larger


def warn_once(text: str) -> None:
    """Warn, if this process has not yet done so in these words."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _problem(said: os.stat_result) -> str | None:
    """Return who else may have written what this tells of; None where nobody may, or where the system does not say."""
    if not hasattr(os, "getuid"):
        return None
    if said.st_uid not in (os.getuid(), 0):
        return f"it belongs to another user ({said.st_uid})"
    if said.st_mode & _OTHERS:
        return f"{'everybody' if said.st_mode & stat.S_IWOTH else 'its group'} may write to it"
    return None
