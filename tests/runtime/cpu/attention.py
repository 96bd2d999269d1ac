"""What the tests of attention and of its gradient share: shapes, and the row of numbers that the kernels read."""

import numpy as np

from dy2st.runtime.cpu.attention import FIELDS
from tests.runtime.cpu.native import TARGETS, Guarded

MASKED = [
    ((1, 1, 1, 1, 1, 1), None),
    ((2, 3, 5, 7, 4, 3), None),
    ((1, 2, 70, 33, 8, 16), (1, 1, 70, 33)),
    ((2, 2, 9, 17, 5, 40), (2, 1, 1, 17)),
    ((2, 1, 9, 16, 5, 2), (1, 1, 9, 1)),
    ((1, 1, 3, 0, 2, 2), None),
    ((1, 1, 0, 3, 2, 2), None),
    ((0, 1, 3, 2, 2, 2), None),
    ((1, 1, 20, 9000, 3, 2), None),
    ((2, 2, 1, 100, 8, 24), (2, 1, 1, 100)),
    ((1, 1, 15, 255, 16, 17), None),
    ((1, 3, 8, 5, 20, 7), None),
]
"""Shapes (outer, inner, queries, keys, width, width of values), and of the mask."""
CAUSAL = [
    (2, 3, 70, 70, 8, 3),
    (1, 2, 5, 400, 4, 2),
    (1, 1, 300, 5, 4, 2),
    (1, 1, 16, 17, 3, 2),
    (1, 2, 401, 401, 4, 49),
    (1, 1, 200, 0, 3, 2),
    (1, 1, 0, 200, 3, 2),
    (1, 1, 130, 193, 20, 17),
]
LESSER = [target for target in TARGETS if target != "avx512"]


def numbers_of(shape, causal, parts):
    """Return the row of numbers that kernels read: extents, and how far apart the axes of each part are."""
    numbers = dict(zip(FIELDS, shape)) | {"causal": int(causal)}
    for name, x in parts.items():
        steps = [0 if extent == 1 else step // x.itemsize for extent, step in zip(x.shape, x.strides)]
        numbers |= dict(zip((f"{name}_outer", f"{name}_inner", f"{name}_row", f"{name}_column"), steps))
    return Guarded(np.array([numbers.get(name, 0) for name in FIELDS], np.int64))


def scratch_of(count):
    """Return memory of so many bytes, at least a line, that holds no numbers."""
    return Guarded(np.full(max(64, -(-count // 64) * 64), 0xFF, np.uint8))
