"""Machine code on disk, with what it is handed, by what it was made from.

The key of an artifact is a recipe, such as the fingerprint of a Program, together with all that decides what is made of
it (environment_key.py). So a later process that has the recipe makes no text, and does not need LLVM.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.records import field, record
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.aot_cache.code_image import Binary, CodeImage
from dy2st.runtime.aot_cache.environment_key import identity


@record
class _State:
    """Whether this process has made the code of a Program."""

    has_made: bool = False


_state = _State()


@record(frozen=True)
class Artifact:
    """Machine code, what there is to say of it, and the arrays that it reads."""

    binary: Binary
    notes: dict[str, Any] = field(default_factory=dict[str, Any])
    arrays: Sequence[np.ndarray[Any, Any]] = ()

    def to_bytes(self) -> bytes:
        """Return the artifact as it stands in a file."""
        binary, image = self.binary, None
        if isinstance(binary, CodeImage):
            image = [binary.writable, binary.symbols, binary.slots, binary.addresses]
        parts = [binary.content] if isinstance(binary, CodeImage) else list(binary)
        arrays = [[a.dtype.str, a.shape] for a in self.arrays]
        header = {"image": image, "parts": [len(p) for p in parts], "arrays": arrays, "notes": self.notes}
        text = json.dumps(header).encode()
        return b"".join([len(text).to_bytes(8, "little"), text, *parts, *(a.tobytes() for a in self.arrays)])


def from_bytes(data: bytes) -> Artifact:
    """Return an artifact from what `to_bytes` gave; ValueError, KeyError or TypeError for anything else."""
    at = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:at])
    parts: list[bytes] = []
    for size in header["parts"]:
        parts.append(_slice(data, at, size))
        at += size
    arrays: list[np.ndarray[Any, Any]] = []
    for name, shape in header["arrays"]:
        dtype = np.dtype(name)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        arrays.append(np.frombuffer(_slice(data, at, size), dtype).reshape(shape).copy())
        at += size
    if header["image"] is None:
        return Artifact(parts, header["notes"], arrays)
    writable, symbols, slots, addresses = header["image"]
    (content,) = parts
    return Artifact(
        CodeImage(content, writable, symbols, slots, [(a, b) for a, b in addresses]), header["notes"], arrays
    )


def _slice(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if size < 0 or len(part) != size:
        raise ValueError("the file ends before what it says that it holds")
    return part


def named_recipe(name: str) -> str:
    """Return the recipe of a module that this package always writes in the same way."""
    return f"module {name}"


def is_cached(recipe: str) -> bool:
    """Return whether there is a file for a recipe; what is in it is not looked at."""
    return disk_cache.has(_ARTIFACTS.key(recipe))


def is_first() -> bool:
    """Return whether no earlier process had cached what every Program calls, so that there was nothing else either."""
    return _is_first(disk_cache.folder())


def is_empty() -> bool:
    """Return whether no Program's code can be cached: there was nothing when this process began, and it has made
    none.
    """
    return is_first() and not _state.has_made


def note_program() -> None:
    """Note that this process has made a Program's code."""
    _state.has_made = True


@functools.cache
def _is_first(_: str | None) -> bool:
    return not is_cached(named_recipe("support"))


def cached(recipe: str | None) -> Artifact | None:
    """Return the artifact of a recipe; None where none is cached, or none that can be read."""
    return None if recipe is None else _ARTIFACTS.read(_ARTIFACTS.key(recipe))


def made(recipe: str | None, make: Callable[[], Artifact]) -> tuple[Artifact, bool]:
    """Return the artifact of a recipe, and whether it was there before; None is the recipe of what cannot be cached."""
    found = cached(recipe)
    if found is not None:
        return found, True
    product = make()
    if recipe is not None:
        _ARTIFACTS.write(_ARTIFACTS.key(recipe), product)
    return product, False


_ARTIFACTS = disk_cache.Kind("product", Artifact.to_bytes, from_bytes, lambda: identity())
