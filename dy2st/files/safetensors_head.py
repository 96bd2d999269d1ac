"""What a safetensors file says of itself, checked before its data are read: the header, its limits and its tensors."""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import regular, strict_json
from dy2st.records import record

MAX_HEADER = 32 << 20
"""How many bytes a header has at most. A Transformer of 12 layers, trained and evaluated, takes 0.7 million of them."""
MAX_TENSORS = 100_000
MAX_AXES = 64


@record(frozen=True)
class Entry:
    """Where a tensor lies: bytes `begin` to `end` of the data."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


@record(frozen=True)
class Opened:
    """A file whose header was read, and whose data follow."""

    file: BinaryIO
    head: bytes
    """The length of the header and the header, as they stand in the file."""
    header: dict[str, Any]
    metadata: dict[str, str] | None
    available: int
    """How many bytes follow the header."""


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Opened]:
    """Open a file and read its header; what is wrong with the file is a FileFormatError that names it."""
    with regular.errors_of(path), regular.opened(path) as (file, size):
        head = _head(file, size)
        header, metadata = parse(head[8:])
        yield Opened(file, head, header, metadata, size - len(head))


@contextlib.contextmanager
def opened_bytes(content: bytes) -> Iterator[Opened]:
    """Do what `opened` does for what would stand in a file."""
    with regular.errors_of("the bytes"):
        file = io.BytesIO(content)
        head = _head(file, len(content))
        header, metadata = parse(head[8:])
        yield Opened(file, head, header, metadata, len(content) - len(head))


def _head(file: BinaryIO, size: int) -> bytes:
    start = file.read(9)
    if len(start) < 8:
        raise FileFormatError("the file is empty or cut short")
    length = int.from_bytes(start[:8], "little")
    if start[8:] != b"{":
        raise FileFormatError(f"not a dy2st file{_looks_like(start[:8])}")
    if length > MAX_HEADER:
        raise FileFormatError(f"the header is said to have {length} bytes, the limit is {MAX_HEADER}")
    head = start + file.read(length - 1) if length <= size - 8 else b""
    if len(head) != 8 + length:
        raise FileFormatError(f"the header is said to have {length} bytes; the file is cut short or altered")
    return head


def _looks_like(start: bytes) -> str:
    if start.startswith((b"\x80", b"(")):
        return " but a pickle, which is not read because reading one can run any code"
    return " but a zip archive (a PyTorch file?)" if start.startswith(b"PK") else ""


def parse(text: bytes) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Return what a header says of tensors, and its metadata, None where it has none."""
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"the header is not UTF-8 text ({error})") from error
    header = strict_json.loads(decoded, "the header")
    if type(header) is not dict:
        raise FileFormatError("the header is not a JSON object")
    metadata = header.pop("__metadata__", None)
    if len(header) > MAX_TENSORS:
        raise FileFormatError(f"the header names {len(header)} tensors, the limit is {MAX_TENSORS}")
    if type(metadata) is not dict or not all(type(value) is str for value in metadata.values()):
        return header, None
    return header, metadata


def entries_of(header: dict[str, Any], available: int, dtypes: Mapping[str, np.dtype[Any]]) -> list[Entry]:
    """Check what the header says of tensors: they must fill the data, in some order, and fit their types."""
    entries = sorted((_entry(name, said, dtypes) for name, said in header.items()), key=lambda e: (e.begin, e.end))
    at = 0
    for entry in entries:
        if entry.begin != at:
            raise FileFormatError(f"tensor {entry.name!r:.60} starts at byte {entry.begin} of the data, not at {at}")
        at = entry.end
    if at != available:
        raise FileFormatError(f"the tensors take {at} bytes, the file has {available}")
    return entries


def _entry(name: str, said: Any, dtypes: Mapping[str, np.dtype[Any]]) -> Entry:
    where = f"tensor {name!r:.60}"
    if type(said) is not dict or said.keys() != {"dtype", "shape", "data_offsets"}:
        raise FileFormatError(f"{where}: dtype, shape and data_offsets are expected")
    code, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    dtype = dtypes.get(code) if type(code) is str else None
    if dtype is None:
        raise FileFormatError(f"{where} has the unknown dtype {code!r:.40}")
    if not _are_sizes(shape, MAX_AXES) or _bytes_of([e or 1 for e in shape], dtype) >= 1 << 63:
        raise FileFormatError(f"{where} has no possible shape: {shape!r:.100}")
    if not _are_sizes(offsets, 2) or len(offsets) != 2:
        raise FileFormatError(f"{where} has no offsets: {offsets!r:.100}")
    begin, end = offsets
    if end - begin != _bytes_of(shape, dtype):
        raise FileFormatError(f"{where} of shape {shape!r:.100} and dtype {dtype} cannot have {end - begin} bytes")
    return Entry(name, dtype, tuple(shape), begin, end)


def _are_sizes(data: Any, most: int) -> bool:
    return type(data) is list and len(data) <= most and all(type(e) is int and 0 <= e < 1 << 63 for e in data)


def _bytes_of(shape: list[int], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * dtype.itemsize
