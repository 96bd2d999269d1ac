"""What a file of torch says of its tensors, and arrays of the storages that they look into."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files.safetensors_io import of_bits
from dy2st.records import record

DTYPES = {
    "float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": "u2", "int64": "i8", "int32": "i4", "int16": "i2",
    "int8": "i1", "uint8": "u1", "bool": "b1", "complex64": "c8", "complex128": "c16",
}  # fmt: skip
"""NumPy's codes for torch's dtypes; bfloat16 is read as bits."""
MAX_AXES = 64
_LIMIT = 1 << 60


@record(frozen=True)
class Storage:
    """A run of `count` elements in a file."""

    key: str
    dtype: str
    count: int

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.count * np.dtype(DTYPES[self.dtype]).itemsize


@record(frozen=True)
class TensorSaid:
    """A tensor as a file describes it: nothing of it is checked."""

    storage: Storage
    offset: Any
    shape: Any
    strides: Any
    dtype: str


class Maker:
    """Makes arrays of tensors that a file describes.

    `read` returns the bytes of a storage. Each storage is read once, each view of it made once; no more than `most`
    bytes are made in all.
    """

    def __init__(self, read: Callable[[str], bytearray], big: bool, most: int):
        self.read, self.order, self.left = read, ">" if big else "<", most
        self.bytes: dict[str, np.ndarray] = {}
        self.made: dict[TensorSaid, np.ndarray] = {}
        self.given: set[str] = set()
        """Storages whose memory a tensor has."""

    def array(self, said: TensorSaid) -> np.ndarray:
        """Return a tensor's elements, in memory that no other tensor has."""
        shape, strides = _checked(said)
        known = self.made.get(said)
        if known is not None:
            return known
        elements = self._elements(said)
        reach = said.offset + (sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if all(shape) else 0)
        if reach > elements.size:
            raise FileFormatError(
                f"a tensor of shape {shape!r:.80}, strides {strides!r:.80} and offset {said.offset} reaches outside of"
                f" its storage {said.storage.key!r:.40}, which has {elements.size} elements"
            )
        self.left -= math.prod(shape) * elements.itemsize
        if self.left < 0:
            raise FileFormatError("the tensors would be larger than the file")
        made = self._copied(said, elements, shape, strides)
        self.made[said] = made = of_bits(made) if said.dtype == "bfloat16" else made
        return made

    def _elements(self, said: TensorSaid) -> np.ndarray:
        """Return the whole storage of a tensor."""
        key, kind = said.storage.key, np.dtype(self.order + DTYPES[said.dtype])
        if key not in self.bytes:
            self.bytes[key] = np.frombuffer(self.read(key), np.uint8)
        data = self.bytes[key]
        if data.size != said.storage.size or data.size % kind.itemsize:
            raise FileFormatError(
                f"the storage {key!r:.40} has {data.size} bytes, not {said.storage.size} for {said.dtype}"
            )
        if said.dtype == "bool" and data.size and data.max() > 1:
            raise FileFormatError(f"the storage {key!r:.40} is bool and has a byte that is neither 0 nor 1")
        return data.view(kind)

    def _copied(
        self, said: TensorSaid, elements: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> np.ndarray:
        """Return a view's elements; the first tensor that is all of a storage in order has the storage's memory."""
        native, key = elements.dtype.newbyteorder("="), said.storage.key
        whole = said.offset == 0 and math.prod(shape) == elements.size and _is_contiguous(shape, strides)
        if whole and key not in self.given:
            self.given.add(key)
            return elements.reshape(shape).astype(native, copy=False)
        if not all(shape):
            return np.empty(shape, native)
        in_bytes = [s * elements.itemsize if n > 1 else 0 for n, s in zip(shape, strides, strict=True)]
        view = np.lib.stride_tricks.as_strided(elements[said.offset :], shape, in_bytes, writeable=False)
        return np.array(view, native, order="C")


def _checked(said: TensorSaid) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides, which are numbers that a tensor can have."""
    shape, strides = said.shape, said.strides
    if not _are_sizes(shape) or not _are_sizes(strides) or not _are_sizes((said.offset,)):
        raise FileFormatError("a tensor has a shape, strides or an offset that are no sizes")
    if len(shape) != len(strides) or math.prod(n or 1 for n in shape) >= _LIMIT:
        raise FileFormatError(f"a tensor has no possible shape {shape!r:.80} with strides {strides!r:.80}")
    return shape, strides


def _are_sizes(numbers: Any) -> bool:
    if type(numbers) is not tuple or len(numbers) > MAX_AXES:
        return False
    return all(type(n) is int and 0 <= n < _LIMIT for n in numbers)


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and s != expected:
            return False
        expected *= n
    return True
