"""The store of all that is cached on disk, by the hash of what it was made from; any number of processes may share it.

Each kind of it (machine code, Programs, conversions, ...) is a `Kind`, which knows its bytes and makes its keys: the
kind's name, `VERSION`, what decides of it (environment_key.py for machine code), and what it was made from.

`DY2ST_CACHE_DIR` names the folder (an empty text: none); the default is `dy2st` in the user's cache folder. What is in
it is run, so what others may have written is not used (trust.py). A file is written under another name and then
renamed, and carries the hash of its key and content: one that is cut short, changed or swapped for another is removed
and made again, and the logger "dy2st.cache" says so at level DEBUG. When there are more bytes than `DY2ST_CACHE_SIZE`
(1 GiB), the files that were not used for longest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import os
import stat
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dy2st import config
from dy2st.runtime.aot_cache import trust
from dy2st.runtime.signal_delivery import go_on

T = TypeVar("T")

VERSION = 5
"""Counts on where the format of what is cached changes, or where what was cached was wrong."""
_LOG = logging.getLogger("dy2st.cache")
_DIGEST = 32
_SUFFIX, _PART = ".o", ".part"
"""The first is as old as the cache, so that files of versions before go like others."""
_SIZE = 2**30
_LOOK_EVERY = 512
"""After how many files the size of the folder is looked at, by one process or another: looking at all takes time."""
_FRESH = 3600.0
"""Seconds within which a file that is read again is not marked as used once more."""
_HALF_WRITTEN = 600.0
"""After how many seconds a file that is not yet under its name was left behind: writing one takes some milliseconds."""
_written = itertools.count()


def folder() -> str | None:
    """Return the folder of the cache, None where there is to be none."""
    return config.cache_folder()


def most_bytes() -> int:
    """Return how many bytes the folder is to have at most, and warn where `DY2ST_CACHE_SIZE` does not say it."""
    try:
        wanted = config.cache_bytes()
    except ValueError as error:
        trust.warn_once(f"{error}: {_SIZE} are taken")
        wanted = None
    return _SIZE if wanted is None else wanted


class Kind(Generic[T]):
    """One kind of what is cached: how a value becomes bytes and comes back, and what decides of it beside its source.

    Bytes that `decode` cannot read, whatever it raises, are removed and made again. What `read`, `write` and `made` are
    given behind the value is handed on to it.

    >>> numbers = Kind("number", lambda n: b"%d" % n, int)
    >>> key = numbers.key("the answer")
    >>> numbers.made(key, lambda: 42)
    42
    """

    def __init__(
        self,
        name: str,
        encode: Callable[..., bytes],
        decode: Callable[..., T],
        decided_by: Callable[[], str] = lambda: "",
    ):
        self.name = name
        self._encode, self._decode, self._decided_by = encode, decode, decided_by

    def key(self, *made_from: object) -> str:
        """Return the name of what is made from texts, and values whose `repr` says in every process what they are."""
        digest = hashlib.sha256()
        for part in (VERSION, self._decided_by(), *made_from):
            is_text = isinstance(part, str)  # `repr` of a long one takes longer than to hash it
            content = (part if is_text else repr(part)).encode("utf-8", "surrogatepass")
            digest.update(b"%d %d " % (is_text, len(content)))
            digest.update(content)
        return f"{self.name}-{digest.hexdigest()}"

    def read(self, key: str, *context: Any) -> T | None:
        """Return what is cached under a key; None where there is nothing that can be trusted and read."""
        content = read(key)
        try:
            return None if content is None else self._decode(content, *context)
        except Exception as error:
            _remove(key, f"{type(error).__name__}: {error}")
            return None

    def write(self, key: str, value: T, *context: Any) -> None:
        """Keep a value under a key."""
        go_on()
        if folder() is not None:
            write(key, self._encode(value, *context))

    def made(self, key: str, make: Callable[[], T], *context: Any) -> T:
        """Return what is cached under a key, else what `make` makes, which is cached then."""
        found = self.read(key, *context)
        if found is None:
            found = make()
            self.write(key, found, *context)
        return found


def has(key: str) -> bool:
    """Return whether there is a file under a key; `read` may find that nobody can trust it."""
    at = folder()
    return at is not None and os.path.exists(os.path.join(at, key + _SUFFIX))


def read(key: str) -> bytes | None:
    """Return what was written under a key, None where there is nothing that can be trusted; that is removed."""
    at = _trusted()
    if at is None:
        return None
    path = os.path.join(at, key + _SUFFIX)
    try:
        found = trust.content(path)
    except OSError:
        return None
    if found is None:
        return _remove(key, "it is no file that was written here")
    data, used = found
    content = data[_DIGEST:]
    if _digest(key, content) != data[:_DIGEST]:
        return _remove(key, "its content is not what was written")
    if not -_FRESH < time.time() - used < _FRESH:
        with contextlib.suppress(OSError):
            os.utime(path)
    return content


def _remove(key: str, why: str) -> None:
    """Remove a file that cannot be used, so that it is made again."""
    _LOG.debug("what is kept as %s is made again: %s", key, why)
    at = _trusted()
    if at is not None:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(at, key + _SUFFIX))


def write(key: str, content: bytes) -> None:
    """Keep content under a key. A folder that cannot be written to keeps nothing: the cache only saves time."""
    if len(content) + _DIGEST > trust.MOST_BYTES:
        return
    with contextlib.suppress(OSError):
        at = folder()
        if at is None:
            return
        os.makedirs(at, mode=0o700, exist_ok=True)
        if _trusted() is None:
            return
        number = next(_written)
        if not number:
            _remove_left_over(at)
        part = os.path.join(at, f"{key}.{os.getpid()}.{number}{_PART}")
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(key, content) + content)
            os.replace(part, os.path.join(at, key + _SUFFIX))
        except BaseException:
            os.unlink(part)
            raise
        if (number + os.getpid()) % _LOOK_EVERY == 0:
            shrink(at, most_bytes())


def _digest(key: str, content: bytes) -> bytes:
    """Return what a file begins with: one that was renamed, or copied over another, is told as one that is broken."""
    return hashlib.sha256(key.encode() + content).digest()


def shrink(at: str, most: int) -> None:
    """Remove the files that were not used for longest, down to three quarters, where a folder has too many bytes."""
    _remove_left_over(at)
    found = [(said.st_mtime, said.st_size, path) for path, said in _files(at, _SUFFIX)]
    total = sum(size for _, size, _ in found)
    goal = most if total <= most else most * 3 // 4
    for _, size, path in sorted(found):
        if total <= goal:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _remove_left_over(at: str) -> None:
    """Remove what processes that were killed left half written, and what is too large to be ours."""
    for path, said in [*_files(at, _PART), *_files(at, _SUFFIX)]:
        is_old_part = path.endswith(_PART) and time.time() - said.st_mtime > _HALF_WRITTEN
        if is_old_part or said.st_size > trust.MOST_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _files(at: str, suffix: str) -> list[tuple[str, os.stat_result]]:
    """Return the files with a suffix, and what the system says of them; links, pipes and folders are none."""
    found: list[tuple[str, os.stat_result]] = []
    with os.scandir(at) as entries:
        for entry in entries:
            if entry.name.endswith(suffix):
                with contextlib.suppress(OSError):  # another process has removed it
                    said = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(said.st_mode):
                        found.append((entry.path, said))
    return found


def _trusted() -> str | None:
    """Return the folder where it is there and nobody else can have put something into it."""
    at = folder()
    return at if at is not None and trust.is_own_folder(at) else None
