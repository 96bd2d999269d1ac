"""The tensors of a library as one safetensors file, which is part of the library or read when an instance is made.

Tensors stand in an order in which each is aligned to its elements. A library takes no other header than its own, so
nothing of a file is interpreted: it has this header and so many bytes behind it, or it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.records import record

_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip
_ALIGNED = 64


@record(frozen=True)
class Weights:
    """A file: its header, its data, and where each tensor begins in them."""

    header: bytes
    data: bytes
    offsets: dict[str, int]

    @property
    def content(self) -> bytes:
        """The whole file."""
        return len(self.header).to_bytes(8, "little") + self.header + self.data


def packed(tensors: Mapping[str, np.ndarray[Any, Any]]) -> Weights:
    """Return tensors as a file.

    >>> packed({"b": np.zeros(2, np.float32), "a": np.zeros(1)}).offsets
    {'a': 0, 'b': 8}
    """
    said: dict[str, Any] = {}
    offsets: dict[str, int] = {}
    data = bytearray()
    for name in sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize):
        array = tensors[name]
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        kind = _NAMES[dtypes.of_array(array).name]
        offsets[name] = len(data)
        said[name] = {
            "dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]
        }  # fmt: skip
        data += little.tobytes()
    header = json.dumps(said, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % _ALIGNED)
    return Weights(header, bytes(data), offsets)
