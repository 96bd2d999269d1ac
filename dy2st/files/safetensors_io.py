"""safetensors files with what dy2st promises of its own: 64-byte alignment, mapped reading, checksums.

    8 bytes     length of the header, little-endian
    header      JSON, padded with spaces: {"__metadata__": {string: string},
                                           name: {"dtype", "shape", "data_offsets"}, ...}
    data        the tensors, back to back

The library `safetensors` reads these files (a test holds that); it writes no alignment and reads by copying, so the
format, which is small, is written and read here. Tensors start at multiples of 64 bytes of the file. The format allows
no holes between them, so a tensor whose size is no such multiple is followed by a tensor of padding named `~0`, `~1`,
... Complex tensors are stored as pairs of floats with one more axis of 2, because readers differ in complex types.

`header_sha256` in the metadata is the checksum of length and header with its own digits as zeros, `data_sha256` that of
the data: no byte of the file can change unnoticed. `format` and `version` say what kind of file it is.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import mmap
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dy2st.dtypes import of_array
from dy2st.errors import FileFormatError
from dy2st.files import atomic, strict_json
from dy2st.records import record

ALIGNMENT = 64
MAX_HEADER = 100_000_000
MAX_AXES = 64
_PADDING = "~"
_CODES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in _CODES.items()}
_PAIRS = {"complex64": "float32", "complex128": "float64"}
_ZEROS = "0" * 64
_COMPLEX, _HEADER_HASH, _DATA_HASH = "complex", "header_sha256", "data_sha256"
_OURS = ("format", "version", _COMPLEX, _HEADER_HASH, _DATA_HASH)


@record(frozen=True)
class Entry:
    """Where a tensor lies: bytes `begin` to `end` of the data."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def write(
    path: str | os.PathLike[str],
    format: str,
    version: int,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str],
) -> None:
    """Write tensors and metadata (strings) to `path`, whole or not at all."""
    stored = _with_padding({name: _stored(name, array) for name, array in tensors.items()})
    digest, at, header = hashlib.sha256(), 0, dict[str, Any]()
    for name, array in stored.items():
        end = at + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, end]}
        digest.update(_bytes(array))
        at = end
    pairs = [name for name, array in tensors.items() if array.dtype.name in _PAIRS]
    ours = {"format": format, "version": str(version), _COMPLEX: strict_json.dumps(pairs)}
    ours |= {_DATA_HASH: digest.hexdigest(), _HEADER_HASH: _ZEROS}
    head = _head({"__metadata__": {**ours, **metadata}, **header})
    atomic.replace(path, itertools.chain([head], map(_bytes, stored.values())))


def read(
    path: str | os.PathLike[str], format: str, version: int, private: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the tensors, mapped from the file and read-only, and the metadata.

    `private` tensors can be written to: the system copies a page when it is, and the file stays as it was.
    FileFormatError for a file that is damaged, of another format, or of a version newer than `version`.
    """
    mapped, size = map_file(path, private)
    try:
        header, metadata = parse(mapped[8 : 8 + size])
        if metadata is None:
            raise FileFormatError("not a dy2st file: its header has no metadata")
        _check_format(metadata, format, version)
        _check_hashes(mapped, size, metadata)
        entries = [e for e in entries_of(header, len(mapped) - 8 - size, DTYPES) if not e.name.startswith(_PADDING)]
        tensors = {entry.name: array_of(mapped, 8 + size, entry, private) for entry in entries}
        _join_pairs(tensors, metadata)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error
    return tensors, {name: text for name, text in metadata.items() if name not in _OURS}


# ---- writing -----------------------------------------------------------------------------------------------------
def _stored(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array as it is stored: contiguous, complex numbers as pairs."""
    if not name or name == "__metadata__" or name.startswith(_PADDING):
        raise ValueError(f"a tensor in a file cannot be named {name!r}")
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"tensor {name!r} of a file must be a NumPy array, not {type(array).__name__}")
    kind = of_array(array).name
    array = np.asarray(array, order="C")
    return array.reshape((*array.shape, 1)).view(_PAIRS[kind]) if kind in _PAIRS else array


def _with_padding(stored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Put tensors of padding between tensors whose size is no multiple of the alignment."""
    last = max((i for i, array in enumerate(stored.values()) if array.nbytes), default=0)
    padded: dict[str, np.ndarray] = {}
    for i, (name, array) in enumerate(stored.items()):
        padded[name] = array
        lacking = -array.nbytes % ALIGNMENT
        if lacking and i < last:
            padded[f"{_PADDING}{len(padded)}"] = np.zeros(lacking, np.uint8)
    return padded


def _head(header: dict[str, Any]) -> bytes:
    """Return length and header, padded so that the data are aligned, with its own checksum in it."""
    text = strict_json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise ValueError(f"the header would have {len(text)} bytes, the limit is {MAX_HEADER}")
    head = len(text).to_bytes(8, "little") + text
    blank, whole = _hash_field(_ZEROS), _hash_field(hashlib.sha256(head).hexdigest())
    at = head.index(blank)
    return head[:at] + whole + head[at + len(blank) :]


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8)) if array.size else memoryview(b"")  # pyright: ignore[reportArgumentType]  NumPy's stubs hide the buffer


def _hash_field(digits: str) -> bytes:
    return f'"{_HEADER_HASH}":"{digits}"'.encode()


# ---- reading -----------------------------------------------------------------------------------------------------
def map_file(path: str | os.PathLike[str], private: bool) -> tuple[mmap.mmap, int]:
    """Map a file; return the map, which the arrays made of it keep alive, and the size of the header."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < 8:
            raise FileFormatError(f"{path}: the file is empty or cut short")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY if private else mmap.ACCESS_READ)
    size = int.from_bytes(mapped[:8], "little")
    if mapped[8:9] != b"{":
        raise FileFormatError(f"{path}: not a dy2st file{_looks_like(mapped[:8])}")
    if size > MAX_HEADER or size > len(mapped) - 8:
        raise FileFormatError(f"{path}: the header is said to have {size} bytes; the file is cut short or altered")
    return mapped, size


def _looks_like(start: bytes) -> str:
    if start.startswith((b"\x80", b"(")):
        return " but a pickle, which is not read because reading one can run any code"
    return " but a zip archive (a PyTorch file?)" if start.startswith(b"PK") else ""


def parse(text: bytes) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Return what a header says of tensors, and its metadata, None where it has none."""
    try:
        header = strict_json.loads(text.decode("utf-8"), "the header")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"the header is not UTF-8 text ({error})") from error
    metadata = header.pop("__metadata__", None)
    if type(metadata) is not dict or not all(type(value) is str for value in metadata.values()):
        return header, None
    return header, metadata


def _check_format(metadata: dict[str, str], format: str, version: int) -> None:
    """Check the kind of file; before the checksums, which a newer version may take otherwise."""
    if metadata.get("format") != format:
        found = repr(metadata["format"])[:40] if "format" in metadata else "of another"
        raise FileFormatError(f"not a file of the format {format!r} but {found}")
    found = metadata.get("version", "")
    if re.fullmatch("[1-9][0-9]{0,8}", found) is None:
        raise FileFormatError(f"{found!r:.40} is no version of the format")
    if int(found) > version:
        raise FileFormatError(f"the file has version {found} of the format; this dy2st reads up to {version}")


def _check_hashes(mapped: mmap.mmap, size: int, metadata: dict[str, str]) -> None:
    if not all(name in metadata for name in _OURS):
        raise FileFormatError("not a dy2st file: its metadata have no checksums")
    head, found = mapped[: 8 + size], _hash_field(metadata[_HEADER_HASH])
    blanked = head.replace(found, _hash_field(_ZEROS))
    if head.count(found) != 1 or hashlib.sha256(blanked).hexdigest() != metadata[_HEADER_HASH]:
        raise FileFormatError("the header was altered: its checksum differs")
    with memoryview(mapped) as whole, whole[8 + size :] as data:
        if hashlib.sha256(data).hexdigest() != metadata[_DATA_HASH]:
            raise FileFormatError("the data were altered or cut short: their checksum differs")


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
    if not _are_sizes(shape) or len(shape) > MAX_AXES or _bytes_of([e or 1 for e in shape], dtype) >= 1 << 63:
        raise FileFormatError(f"{where} has no possible shape: {shape!r:.100}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise FileFormatError(f"{where} has no offsets: {offsets!r:.100}")
    begin, end = offsets
    if end - begin != _bytes_of(shape, dtype):
        raise FileFormatError(f"{where} of shape {shape!r:.100} and dtype {dtype} cannot have {end - begin} bytes")
    return Entry(name, dtype, tuple(shape), begin, end)


def _are_sizes(data: Any) -> bool:
    return type(data) is list and all(type(e) is int and e >= 0 for e in data)


def _bytes_of(shape: list[int], dtype: np.dtype[Any]) -> int:
    return math.prod(shape) * dtype.itemsize


def array_of(mapped: mmap.mmap, start: int, entry: Entry, private: bool) -> np.ndarray:
    """Return a tensor of the file as an array over the map."""
    count = math.prod(entry.shape)
    if not count:
        empty = np.empty(entry.shape, entry.dtype)
        empty.flags.writeable = private
        return empty
    flat = np.frombuffer(mapped, entry.dtype, count, start + entry.begin)
    if entry.dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        raise FileFormatError(f"tensor {entry.name!r:.60} is bool and has a byte that is neither 0 nor 1")
    return flat.reshape(entry.shape)


def _join_pairs(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Make complex tensors of those that are stored as pairs of floats."""
    names = strict_json.loads(metadata[_COMPLEX], "the list of complex tensors")
    kinds = {np.dtype(real): np.dtype(name) for name, real in _PAIRS.items()}
    for name in names if type(names) is list else [None]:
        array = tensors.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or array is None or array.dtype not in kinds or array.shape[-1:] != (2,):
            raise FileFormatError(f"tensor {name!r:.60} is said to be complex and is not stored so")
        tensors[name] = array.view(kinds[array.dtype]).reshape(array.shape[:-1])
