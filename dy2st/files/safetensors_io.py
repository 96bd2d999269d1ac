"""safetensors files with what dy2st promises of its own: 64-byte alignment and checksums.

    8 bytes     length of the header, little-endian
    header      JSON, padded with spaces: {"__metadata__": {string: string},
                                           name: {"dtype", "shape", "data_offsets"}, ...}
    data        the tensors, back to back

The library `safetensors` reads these files (a test holds that); it writes no alignment and checks no checksum, so the
format, which is small, is written and read here. Tensors start at multiples of 64 bytes of the file. The format allows
no holes between them, so a tensor whose size is no such multiple is followed by a tensor of padding named `~0`, `~1`,
... Complex tensors are stored as pairs of floats with one more axis of 2, because readers differ in complex types.

`header_sha256` in the metadata is the checksum of length and header with its own digits as zeros, `data_sha256` that of
the data: no byte of the file can change unnoticed. `format` and `version` say what kind of file it is.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from dy2st.dtypes import bfloat16, of_array
from dy2st.errors import FileFormatError
from dy2st.files import atomic, safetensors_head, strict_json
from dy2st.files.safetensors_head import Entry, Opened, entries_of

ALIGNMENT = 64
_PADDING = "~"
_CODES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "float16": "F16", "float32": "F32", "float64": "F64",
}  # fmt: skip
DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in _CODES.items()}
_CODES["bfloat16"], DTYPES["BF16"] = "BF16", np.dtype("<u2")  # read as bits: its package loads with the first one
_PAIRS = {"complex64": "float32", "complex128": "float64"}
_ZEROS = "0" * 64
_COMPLEX, _HEADER_HASH, _DATA_HASH = "complex", "header_sha256", "data_sha256"
_OURS = ("format", "version", _COMPLEX, _HEADER_HASH, _DATA_HASH)
_CHUNK = 1 << 18
"""How many bytes are read at once, and go into the checksum while they are in cache."""


def write(
    path: str | os.PathLike[str],
    format: str,
    version: int,
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str],
) -> None:
    """Write tensors and metadata (strings) to `path`, whole or not at all."""
    with atomic.replacing(path) as out:
        write_to(out, format, version, tensors, metadata)


def write_to(
    out: BinaryIO, format: str, version: int, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> str:
    """Write what `write` does to an open file; return the checksum of the header, which differs where files do."""
    stored = _with_padding({name: _stored(name, array) for name, array in tensors.items()})
    if len(stored) > safetensors_head.MAX_TENSORS:
        raise ValueError(f"a file holds {safetensors_head.MAX_TENSORS} tensors at most, with padding {len(stored)}")
    at, header = 0, dict[str, Any]()
    for name, array in stored.items():
        end = at + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    pairs = [name for name, array in tensors.items() if array.dtype.name in _PAIRS]
    ours = {"format": format, "version": str(version), _COMPLEX: strict_json.dumps(pairs)}
    ours |= {_DATA_HASH: _ZEROS, _HEADER_HASH: _ZEROS}
    blank, digest = _head({"__metadata__": {**ours, **metadata}, **header}), hashlib.sha256()
    out.write(blank)
    for array in stored.values():
        _write_out(array, out, digest)
    ours[_DATA_HASH] = digest.hexdigest()
    head = _head({"__metadata__": {**ours, **metadata}, **header})
    out.seek(0)
    out.write(head)
    return head_digest(head)


def head_digest(head: bytes) -> str:
    """Return the checksum that a header has in it."""
    return head.partition(f'"{_HEADER_HASH}":"'.encode())[2][: len(_ZEROS)].decode("ascii", "replace")


def read(
    path: str | os.PathLike[str], format: str, version: int, private: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the tensors, read-only unless `private`, and the metadata.

    The tensors are copies of what stood in the file, in memory of their own: whatever becomes of the file, they stay.
    FileFormatError for a file that is damaged, of another format, or of a version newer than `version`.
    """
    with safetensors_head.opened(path) as found:
        return tensors_of(found, format, version, private)


def tensors_of(
    found: Opened, format: str, version: int, private: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return what `read` does of a file that was opened."""
    metadata = found.metadata
    if metadata is None:
        raise FileFormatError("not a dy2st file: its header has no metadata")
    _check_format(metadata, format, version)
    _check_head(found.head, metadata)
    entries = entries_of(found.header, found.available, DTYPES)
    digest = hashlib.sha256()
    read = arrays_of(found, entries, digest)
    if digest.hexdigest() != metadata[_DATA_HASH]:
        raise FileFormatError("the data were altered or cut short: their checksum differs")
    tensors = {name: array for name, array in read.items() if not name.startswith(_PADDING)}
    _join_pairs(tensors, metadata)
    for array in tensors.values():
        array.flags.writeable = private
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
    strict_json.check_size(text, "the header", ValueError)
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    if len(text) > safetensors_head.MAX_HEADER:
        limit = safetensors_head.MAX_HEADER
        raise ValueError(f"the header would have {len(text)} bytes, the limit is {limit}")
    head = len(text).to_bytes(8, "little") + text
    blank, whole = _hash_field(_ZEROS), _hash_field(hashlib.sha256(head).hexdigest())
    at = head.index(blank)
    return head[:at] + whole + head[at + len(blank) :]


def _write_out(array: np.ndarray, out: BinaryIO, digest: Any) -> None:
    """Write the elements of an array; what goes into the checksum is what was written, whoever writes to the array."""
    data = _bytes(array)
    for at in range(0, len(data), _CHUNK):
        part = bytes(data[at : at + _CHUNK])
        digest.update(part)
        out.write(part)


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8)) if array.size else memoryview(b"")  # pyright: ignore[reportArgumentType]  NumPy's stubs hide the buffer


def _hash_field(digits: str) -> bytes:
    return f'"{_HEADER_HASH}":"{digits}"'.encode()


# ---- reading -----------------------------------------------------------------------------------------------------
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


def _check_head(head: bytes, metadata: dict[str, str]) -> None:
    if not all(name in metadata for name in _OURS):
        raise FileFormatError("not a dy2st file: its metadata have no checksums")
    found = _hash_field(metadata[_HEADER_HASH])
    blanked = head.replace(found, _hash_field(_ZEROS))
    if head.count(found) != 1 or hashlib.sha256(blanked).hexdigest() != metadata[_HEADER_HASH]:
        raise FileFormatError("the header was altered: its checksum differs")


def arrays_of(found: Opened, entries: list[Entry], digest: Any = None) -> dict[str, np.ndarray]:
    """Read the tensors of a file, which `entries_of` has checked, into memory; `digest` is fed with all of it."""
    arrays: dict[str, np.ndarray] = {}
    for entry in entries:
        raw = _aligned(entry.end - entry.begin)
        _fill(found.file, memoryview(raw), digest)  # pyright: ignore[reportArgumentType]  NumPy's stubs hide the buffer
        if entry.dtype.kind == "b" and raw.size and raw.max() > 1:
            raise FileFormatError(f"tensor {entry.name!r:.60} is bool and has a byte that is neither 0 nor 1")
        array = raw.view(entry.dtype).reshape(entry.shape)
        arrays[entry.name] = of_bits(array) if entry.dtype == DTYPES["BF16"] else array
    return arrays


def of_bits(bits: np.ndarray) -> np.ndarray:
    """Return the bfloat16 numbers that 16 bits each stand for."""
    return bits.astype(np.uint16, copy=False).view(bfloat16.numpy)


def _aligned(size: int) -> np.ndarray:
    """Return so many bytes of memory, from a multiple of the alignment on."""
    whole = np.empty(size + ALIGNMENT, np.uint8)
    skipped = -whole.__array_interface__["data"][0] % ALIGNMENT
    return whole[skipped : skipped + size]


def _fill(file: BinaryIO, into: memoryview, digest: Any) -> None:
    at = 0
    while at < len(into):
        part = into[at : at + _CHUNK]
        count: int = file.readinto(part)  # pyright: ignore[reportAttributeAccessIssue]  a BufferedReader has it
        if not count:
            raise FileFormatError("the file was cut short while it was read")
        if digest is not None:
            digest.update(part[:count])
        at += count


def _join_pairs(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Make complex tensors of those that are stored as pairs of floats."""
    names = strict_json.loads(metadata[_COMPLEX], "the list of complex tensors")
    kinds = {np.dtype(real): np.dtype(name) for name, real in _PAIRS.items()}
    for name in names if type(names) is list else [None]:
        array = tensors.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or array is None or array.dtype not in kinds or array.shape[-1:] != (2,):
            raise FileFormatError(f"tensor {name!r:.60} is said to be complex and is not stored so")
        tensors[name] = array.view(kinds[array.dtype]).reshape(array.shape[:-1])
