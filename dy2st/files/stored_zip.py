"""Zip archives whose files stand in them as they are: what torch's archives are, without anything unpacked to disk.

    file header, name, extra, data      for each file
    central directory                   an entry for each file: name, size, checksum, where its header stands
    (zip64 end record, its locator)     where a number above has no room
    end record                          where the directory stands, how many entries it has

The directory is checked whole before any data are read. A file that is compressed is refused, so what is read is never
larger than the archive; files that overlap are refused, so all of them together are not either. Names are keys of a
dict and never paths. Format: PKWARE's APPNOTE.TXT.
"""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

from dy2st.errors import FileFormatError
from dy2st.records import record

START = b"PK\x03\x04"
MAX_FILES = 100_000
MAX_DIRECTORY = 32 << 20
_END, _END64, _LOCATOR, _ENTRY = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x01\x02"
_MAX_COMMENT = 1 << 16
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_CHUNK = 1 << 20


@record(frozen=True)
class Stored:
    """A file of an archive: where its header stands, how long its data are, and their checksum."""

    name: str
    header: int
    size: int
    checksum: int


class Archive:
    """The files of an archive of `size` bytes, by name."""

    def __init__(self, file: BinaryIO, size: int):
        self.file, self.size = file, size
        begin, length, count = self._end()
        if count > MAX_FILES:
            raise FileFormatError(f"the archive has {count} files, the limit is {MAX_FILES}")
        if length > MAX_DIRECTORY or begin + length > size:
            raise FileFormatError(f"the archive's directory is said to have {length} bytes at byte {begin}")
        self.files = _entries(self._at(begin, length), count)
        self._check_places(begin)

    def read(self, name: str) -> bytearray:
        """Return the data of a file, whose checksum is taken."""
        found = self.files.get(name)
        if found is None:
            raise FileFormatError(f"the archive has no file {name!r:.80}")
        head = self._at(found.header, 30)
        if head[:4] != START:
            raise FileFormatError(f"the file {name!r:.80} of the archive does not start where the directory says")
        begin = found.header + 30 + sum(struct.unpack("<HH", head[26:30]))
        if begin + found.size > self.size:
            raise FileFormatError(f"the file {name!r:.80} of the archive reaches over its end")
        data, checksum = bytearray(found.size), 0
        view = memoryview(data)
        self.file.seek(begin)
        for at in range(0, found.size, _CHUNK):
            part = view[at : at + _CHUNK]
            if self.file.readinto(part) != len(part):  # pyright: ignore[reportAttributeAccessIssue]  a BufferedReader has it
                raise FileFormatError("the file was cut short while it was read")
            checksum = zlib.crc32(part, checksum)
        if checksum != found.checksum:
            raise FileFormatError(f"the file {name!r:.80} of the archive was altered: its checksum differs")
        return data

    def _at(self, begin: int, count: int) -> bytes:
        self.file.seek(begin)
        data = self.file.read(count) if begin + count <= self.size else b""
        if len(data) != count:
            raise FileFormatError("the archive is damaged or cut short")
        return data

    def _end(self) -> tuple[int, int, int]:
        """Return where the directory begins, how many bytes and how many entries it has."""
        length = min(self.size, 22 + _MAX_COMMENT)
        tail = self._at(self.size - length, length)
        at = tail.rfind(_END, 0, len(tail) - 18)
        if at < 0:
            raise FileFormatError("the archive is cut short: it has no end record")
        count, size, begin = struct.unpack("<HII", tail[at + 10 : at + 20])
        if count != _FULL16 and _FULL32 not in (size, begin):
            return begin, size, count
        if at < 20 or tail[at - 20 : at - 16] != _LOCATOR:
            raise FileFormatError("the archive is damaged: its end record has no numbers")
        (place,) = struct.unpack("<Q", tail[at - 12 : at - 4])
        record64 = self._at(place, 56)
        if record64[:4] != _END64:
            raise FileFormatError("the archive is damaged: its end record has no numbers")
        count, size, begin = struct.unpack("<QQQ", record64[32:56])
        return begin, size, count

    def _check_places(self, directory: int) -> None:
        """Check that no file reaches into the next one, or into the directory."""
        ordered = sorted(self.files.values(), key=lambda one: one.header)
        ends = [one.header for one in ordered[1:]] + [directory]
        for one, end in zip(ordered, ends, strict=False):
            if one.header + 30 + len(one.name.encode()) + one.size > end:
                raise FileFormatError(f"the files of the archive overlap: {one.name!r:.80} is said to be too long")


def _entries(directory: bytes, count: int) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    at = 0
    for _ in range(count):
        fixed = directory[at : at + 46]
        if len(fixed) < 46 or fixed[:4] != _ENTRY:
            raise FileFormatError("the archive's directory is damaged")
        flags, method = struct.unpack("<HH", fixed[8:12])
        checksum, packed, size, named, extra, comment = struct.unpack("<IIIHHH", fixed[16:34])
        (header,) = struct.unpack("<I", fixed[42:46])
        name = _name(directory[at + 46 : at + 46 + named])
        if flags & 1 or method != 0:
            what = "encrypted" if flags & 1 else "compressed"
            raise FileFormatError(f"the file {name!r:.80} of the archive is {what}; torch stores files as they are")
        wide = _wide(directory[at + 46 + named : at + 46 + named + extra])
        size, packed, header = (
            wide.pop(0) if number == _FULL32 and wide else number for number in (size, packed, header)
        )
        if size != packed or name in found:
            raise FileFormatError(f"the archive's directory is damaged at the file {name!r:.80}")
        found[name] = Stored(name, header, size, checksum)
        at += 46 + named + extra + comment
    return found


def _name(data: bytes) -> str:
    try:
        name = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError("the archive has a file whose name is not UTF-8 text") from error
    if not name or name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise FileFormatError(f"the archive has a file whose name leads out of it: {name!r:.80}")
    return name


def _wide(extra: bytes) -> list[int]:
    """Return the numbers of 64 bits of an entry."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack("<HH", extra[at : at + 4])
        if kind == 1:
            field = extra[at + 4 : at + 4 + length]
            return [int.from_bytes(field[k : k + 8], "little") for k in range(0, len(field) // 8 * 8, 8)]
        at += 4 + length
    return []
