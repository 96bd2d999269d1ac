"""safetensors files as other programs write and read them: tensors by name, and nothing of dy2st's own.

Such a file has no checksums, alignment or nesting.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from dy2st.files import atomic, safetensors_head, safetensors_io

SUFFIX = ".safetensors"
_DTYPES: Mapping[str, np.dtype[Any]] = {
    **safetensors_io.DTYPES,
    "C64": np.dtype("<c8"),
    "C128": np.dtype("<c16"),
}


def load(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the tensors of a file by name; they can be written to, which changes no file.

    FileFormatError says in one line what is wrong with a file that is damaged or has a dtype that is not here.
    """
    with safetensors_head.opened(path) as found:
        return tensors_of(found)


def tensors_of(found: safetensors_head.Opened) -> dict[str, np.ndarray]:
    """Return what `load` does of a file that was opened."""
    entries = safetensors_head.entries_of(found.header, found.available, _DTYPES)
    return safetensors_io.arrays_of(found, entries)


def save(tensors: Mapping[str, np.ndarray], path: str | os.PathLike[str]) -> None:
    """Write tensors by name to `path`, whole or not at all."""
    import safetensors.numpy  # loads on first use

    contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in tensors.items()}
    atomic.replace(path, [safetensors.numpy.save(contiguous, {"format": "np"})])
