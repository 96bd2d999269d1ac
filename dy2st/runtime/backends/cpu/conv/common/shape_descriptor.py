"""The extents of a convolution or pooling as a row of integers that generated code reads: always three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, minus, plus, times

FIELDS = (
    "batch", "channels", "filters", "groups",
    *(f"{name}{axis}" for name in ("in", "kernel", "out", "stride", "low", "dilation", "high")
      for axis in range(3)), "mixed", "after",
)  # fmt: skip
"""What stands in the row, as int64; `low` and `high` are the padding before and behind, the latter for pooling.

`mixed` says how many images' elements lie by turns in planes and results (batch_interleaved.py), which is 1 for
callers; `after` is the address of what is done with the channels of results (gemm/epilogue.py), 0 for nothing.
"""

_FILL = {"in": 1, "kernel": 1, "out": 1, "stride": 1, "low": 0, "dilation": 1, "high": 0}


def shape_row(batch: int, channels: int, filters: int, groups: int, **axes: Sequence[int]) -> list[int]:
    """Return the row for 1 to 3 spatial axes; missing ones, in front, have extent 1, as have missing numbers.

    >>> shape_row(8, 3, 2, 1, **{"in": (5,), "kernel": (3,), "out": (3,)})
    [8, 3, 2, 1, 1, 1, 5, 1, 1, 3, 1, 1, 3, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0]
    """
    row = [batch, channels, filters, groups]
    for name, fill in _FILL.items():
        given = axes.get(name, ())
        row += [fill] * (3 - len(given)) + list(given)
    return [*row, 1, 0]


class ConvShape:
    """Reads of a shape row in a function; each number is read once, at its beginning."""

    def __init__(self, f: LLVMFunction, names: Sequence[str], row: str = "%shape"):
        self._registers = {name: f.load("i64", f.offset(row, 8 * FIELDS.index(name))) for name in names}

    def __getitem__(self, name: str) -> str:
        return self._registers[name]

    def axes(self, name: str) -> tuple[str, str, str]:
        """Return the registers of the three axes."""
        return (self[f"{name}0"], self[f"{name}1"], self[f"{name}2"])


def axis_fields(*names: str) -> list[str]:
    """Return the names of the three axes' fields."""
    return [f"{name}{axis}" for name in names for axis in range(3)]


def source(f: LLVMFunction, shape: ConvShape, axis: int, out: str, tap: str) -> str:
    """Write the input's place, maybe outside, that meets place `tap` of the kernel for place `out` of the result."""
    strided = times(f, out, shape[f"stride{axis}"])
    dilated = times(f, tap, shape[f"dilation{axis}"])
    return minus(f, plus(f, strided, dilated), shape[f"low{axis}"])


def inside(f: LLVMFunction, place: str, extent: str) -> str:
    """Write whether 0 <= place < extent."""
    return compare(f, "ult", place, extent)
