"""Packed files of strangers, as data sets come: what they unpack to is bounded, and any damage is a FileFormatError."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from dy2st.errors import FileFormatError
from dy2st.files import regular

MOST_BYTES = 16 << 30
"""What an archive unpacks to: the largest of the data sets has 2 GiB."""
MOST_IN_MEMORY = 1 << 30
"""What a file unpacks to that is held as a whole: the largest of the data sets has 47 MB."""
MOST_MEMBERS = 500_000
_GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file; yield it with its size. What is raised for its content names it, that of unpacking too."""
    with regular.errors_of(path), regular.opened(path) as found:
        try:
            yield found
        except (EOFError, gzip.BadGzipFile, lzma.LZMAError, tarfile.TarError, zlib.error) as error:
            reason = str(error).partition(":\n")[0]  # tarfile tells line by line what it tried
            raise FileFormatError(f"the file is damaged or cut short: {reason}") from error


def content(file: BinaryIO, size: int) -> bytes:
    """Return the bytes of a file of that size, unpacked where gzip packed it."""
    data = file.read(min(size, MOST_IN_MEMORY + 1))
    if data[:2] == _GZIP:
        file.seek(0)
        with gzip.GzipFile(fileobj=file) as packed:
            data = packed.read(MOST_IN_MEMORY + 1)
    if len(data) > MOST_IN_MEMORY:
        raise FileFormatError(f"it holds more than the {MOST_IN_MEMORY:,} bytes that are read")
    return data


def members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the files of an archive, no links and folders among them; an error where it holds more than is read."""
    for count, member in enumerate(archive):
        if count >= MOST_MEMBERS or member.offset_data + member.size > MOST_BYTES:
            raise FileFormatError(
                f"it holds more than the {MOST_MEMBERS:,} files or {MOST_BYTES:,} bytes that are read"
            )
        if member.isfile():
            yield member


def member_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return the bytes of a file in an archive."""
    file: Any = archive.extractfile(member)
    if member.size > MOST_IN_MEMORY:
        raise FileFormatError(
            f"the file {member.name!r:.60} in it has more than the {MOST_IN_MEMORY:,} bytes that are read"
        )
    return file.read()
