"""Numbers as LLVM writes them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from dy2st.dtypes import DType, bfloat16


def double(value: float) -> str:
    """Return a float as an LLVM literal, bit for bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def element(value: Any, dtype: DType) -> str:
    """Return an element of a tensor as an LLVM literal of its type."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_floating:
        computed_in = np.float32 if dtype is bfloat16 else dtype.numpy
        return double(float(np.asarray(value).astype(computed_in)))
    number = int(np.asarray(value).astype(dtype.numpy))
    return str(number - 256 if dtype.name == "uint8" and number > 127 else number)
