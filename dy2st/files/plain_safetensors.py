"""safetensors files as other programs write and read them: tensors by name, and nothing of dy2st's own.

Such a file has no checksums, alignment or nesting, and may hold bfloat16, which NumPy has not: it is read as float32,
which every bfloat16 is exactly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import atomic, safetensors_io

SUFFIX = ".safetensors"
_DTYPES: Mapping[str, np.dtype[Any]] = {
    **safetensors_io.DTYPES,
    "BF16": np.dtype("<u2"),
    "C64": np.dtype("<c8"),
    "C128": np.dtype("<c16"),
}


def format_of(path: str | os.PathLike[str]) -> str:
    """Return what the metadata of a safetensors file say its format is: "dy2st-state", "pt", ...; "" for nothing."""
    mapped, size = safetensors_io.map_file(path, False)
    try:
        _, metadata = safetensors_io.parse(mapped[8 : 8 + size])
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error
    return (metadata or {}).get("format", "")


def load(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the tensors of a file by name, mapped; they can be written to, which changes no file.

    FileFormatError says in one line what is wrong with a file that is damaged or has a dtype that is not here.
    """
    mapped, size = safetensors_io.map_file(path, True)
    try:
        header, _ = safetensors_io.parse(mapped[8 : 8 + size])
        entries = safetensors_io.entries_of(header, len(mapped) - 8 - size, _DTYPES)
        arrays = {entry.name: safetensors_io.array_of(mapped, 8 + size, entry, True) for entry in entries}
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error
    return {name: from_bfloat16(a) if a.dtype == np.uint16 else a for name, a in arrays.items()}


def save(tensors: Mapping[str, np.ndarray], path: str | os.PathLike[str]) -> None:
    """Write tensors by name to `path`, whole or not at all."""
    import safetensors.numpy  # loads on first use

    contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in tensors.items()}
    atomic.replace(path, [safetensors.numpy.save(contiguous, {"format": "np"})])


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Return the float32 numbers that bits of bfloat16 (as uint16) stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
