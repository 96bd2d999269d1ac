"""`.pdiparams`: tensors one after another, each with a head that says its dtype and shape; names stand in the model.

    version 0 (4 bytes), levels of detail (8 bytes: how many; each with its bytes), version 0 (4 bytes),
    length of the head (4 bytes), the head (TensorDesc of framework.proto), the elements

Names are in the order in which the model has its weights. Each size is checked against the bytes that are there.
"""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import regular
from dy2st.files.safetensors_io import of_bits
from dy2st.paddle_files.graph import BY_NUMBER, WIDTHS, Weight, checked_shape
from dy2st.paddle_files.wire import parse

_HEAD = {1: ("dtype", "int"), 2: ("dims", "int*")}
_MOST_HEAD, _MOST_LEVELS = 1024, 16


def read_weights(path: str | os.PathLike[str] | None, weights: list[Weight]) -> None:
    """Give weights their arrays, in order; FileFormatError where a file does not fit them."""
    if path is None:
        if weights:
            raise FileNotFoundError("the model has weights, and there is no .pdiparams file beside it")
        return
    with regular.errors_of(path), regular.opened(path) as (file, size):
        data = file.read(size)
        at = 0
        for weight in weights:
            weight.array, at = _tensor(data, at, weight)
        if at != len(data):
            raise FileFormatError(f"{len(data) - at} bytes more than the weights of the model")


def _tensor(data: bytes, at: int, weight: Weight) -> tuple[np.ndarray[Any, Any], int]:
    what = f"the weight {weight.name!r:.60}"

    def number(code: str) -> int:
        nonlocal at
        width = struct.calcsize(code)
        if at + width > len(data):
            raise FileFormatError(f"it is cut short at {what}")
        at += width
        return int(struct.unpack_from(code, data, at - width)[0])

    if number("<I"):
        raise FileFormatError(f"{what} has a version that is not 0")
    levels = number("<Q")
    if levels > _MOST_LEVELS:
        raise FileFormatError(f"{what} has {levels} levels of detail")
    for _ in range(levels):
        at += number("<Q")
    if number("<I"):
        raise FileFormatError(f"{what} has a version that is not 0")
    length = number("<i")
    if not 0 <= length <= min(_MOST_HEAD, len(data) - at):
        raise FileFormatError(f"{what} has a head of {length} bytes")
    head = parse(data[at : at + length], _HEAD)
    at += length
    dtype, shape = BY_NUMBER.get(head.get("dtype", -1)), checked_shape(head["dims"], what)
    if dtype is None or dtype not in WIDTHS:
        raise FileFormatError(f"{what} has the dtype number {head.get('dtype')}, which is none of a tensor")
    if dtype != weight.dtype or shape != weight.shape:
        raise FileFormatError(f"{what} is {dtype}{list(shape)}, and {weight.dtype}{list(weight.shape)} in the model")
    count = int(np.prod(shape, dtype=np.int64))
    bytes_of = count * WIDTHS[dtype]
    if bytes_of > len(data) - at:
        raise FileFormatError(f"it is cut short at {what}")
    code = "uint16" if dtype == "bfloat16" else dtype
    array = np.frombuffer(data, np.dtype(code).newbyteorder("<"), count, at).reshape(shape)
    array = of_bits(array) if dtype == "bfloat16" else array.astype(code)
    return array, at + bytes_of
