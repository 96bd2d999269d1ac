"""Weights as integers: rows of an array, each with a scale, or one for each group of its elements."""

from __future__ import annotations

import numpy as np


def rounded_rows(rows: np.ndarray, bits: int, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as int8 with float32 scales, as the op `dequantize` reads them; of 4 bits two rows in each byte.

    >>> integers, scale = rounded_rows(np.array([[1.0, -0.5], [0.25, 0.5]], np.float32), 8, 0)
    >>> integers.tolist(), [round(float(127 * s), 3) for s in scale]
    ([[127, -64], [64, 127]], [1.0, 0.5])
    """
    most = 2 ** (bits - 1) - 1
    count = len(rows)
    parts = rows.reshape(count, -1, group) if group else rows.reshape(count, 1, -1)
    scale = (np.abs(parts).max(2, initial=0.0) / most).astype(np.float32)
    by = np.where(scale == 0, np.float32(1), scale)[:, :, None]
    integers = np.clip(np.rint(parts / by), -most, most).astype(np.int8).reshape(rows.shape)
    if bits == 4:
        integers = (integers[1::2] << 4) | (integers[0::2] & 15)
    return np.ascontiguousarray(integers), np.ascontiguousarray(scale.T if group else scale[:, 0])
