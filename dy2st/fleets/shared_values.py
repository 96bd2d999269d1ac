"""A value that all processes of a machine read without a copy of its arrays: a file of pickled data, and arrays mapped.

The file belongs to the process that wrote it and is read by its own children alone, as what `multiprocessing` sends.
"""

from __future__ import annotations

import mmap
import pickle
from pathlib import Path
from typing import Any

_ALIGNED = 64


def write(value: Any, path: Path) -> None:
    """Write a value: its arrays as they stand in memory, aligned, behind the pickle that refers to them."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, 5, buffer_callback=buffers.append)
    blocks = [memoryview(head), *(b.raw() for b in buffers)]
    sizes = pickle.dumps([len(b) for b in blocks])
    with open(path, "wb") as file:
        file.write(len(sizes).to_bytes(8, "little") + sizes)
        for block in blocks:
            file.write(bytes(-file.tell() % _ALIGNED))
            file.write(block)


def read(path: Path) -> Any:
    """Return what `write` wrote; arrays are read-only views of the file."""
    with open(path, "rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    start = 8 + int.from_bytes(mapped[:8], "little")
    blocks: list[memoryview] = []
    for size in pickle.loads(mapped[8:start]):
        start += -start % _ALIGNED
        blocks.append(mapped[start : start + size])
        start += size
    return pickle.loads(blocks[0], buffers=blocks[1:])
