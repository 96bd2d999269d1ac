"""What both formats of PaddlePaddle become: blocks of operations on values that have names.

An operation has the name and the operands that PIR gives it (`pd_op.` left out); `legacy.py` says how those of a
ProgramDesc are named there. An operand is the name of a value, a list of names, None where it is absent, or a Given:
what the file says itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.records import field, record

MOST_DEPTH, MOST_OPERATIONS, MOST_ELEMENTS = 64, 200_000, 1 << 33


BY_NUMBER = {
    0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64", 20: "uint8", 21: "int8",
    22: "bfloat16", 23: "complex64", 24: "complex128",
}  # fmt: skip
"""Dtypes by their numbers in framework.proto."""
WIDTHS = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4,
    "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""How many bytes an element has."""


class Unreadable(FileFormatError):
    """A model with an operation that there is no rule for, or used in a way that there is none for."""


@record(frozen=True)
class Given:
    """An operand that the file has itself: a number or a list of them."""

    value: Any


@record
class Operation:
    """One operation; `said` is how the file calls it."""

    name: str
    said: str
    operands: list[Any]
    results: list[Any]
    attributes: dict[str, Any]
    blocks: list[Block] = field(default_factory=list["Block"])


@record
class Block:
    """Operations in order; a block of an operation reads the values around it."""

    arguments: list[Any]
    operations: list[Operation]
    results: list[Any]


@record(frozen=True)
class Input:
    """What a model takes: -1 in its shape is any extent."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@record
class Weight:
    """A tensor beside the model, by the name of its value and under its own name."""

    value: Any
    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    array: np.ndarray[Any, Any] | None = None


@record
class Graph:
    """A model."""

    inputs: list[Input]
    outputs: list[str]
    """Their names; the values are the results of the block."""
    weights: list[Weight]
    block: Block
    arrays: list[Any] = field(default_factory=list[Any])
    """Tensor arrays that are there, and empty, at first."""
    absent: list[Any] = field(default_factory=list[Any])
    """Values that nothing computes and no file has: scratch memory of PaddlePaddle."""

    def operations(self) -> list[Operation]:
        """Return all operations, those of inner blocks too."""
        found: list[Operation] = []
        waiting = [self.block]
        while waiting:
            for operation in waiting.pop().operations:
                found.append(operation)
                waiting += operation.blocks
        return found


def checked_shape(shape: Any, what: str) -> tuple[int, ...]:
    """Return a shape of the file; FileFormatError where it is none, or one that nothing can hold."""
    if type(shape) is not list or len(shape) > 16 or not all(type(e) is int and e >= -1 for e in shape):
        raise FileFormatError(f"{what} has the shape {shape!r:.60}")
    total = 1
    for extent in shape:
        total *= max(extent, 1)
    if total > MOST_ELEMENTS:
        raise FileFormatError(f"{what} has {total:,} elements")
    return tuple(shape)
