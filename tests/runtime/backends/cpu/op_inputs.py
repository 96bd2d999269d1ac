"""Operands of an op's samples in other sizes, with special values, and as they may lie in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dy2st.dtypes import dtype as dtype_of
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.rounded import TANGENT
from tests.ops.test_registry import KNOWN

SIZES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 4097)
"""Around the widths of vectors, of several of them, and of what is split."""
MOST_ELEMENTS = 12_000
MOST_OF_MATRICES = 5000
"""Elements of operands with two axes that change together: what is done with matrices takes the third power."""


def sizes_of(op: Op, sample: Sample) -> list[int]:
    """Return the extents of a sample that may be others: those that no attribute and no rule fixes."""
    known = KNOWN.get(op.name, {})
    found: set[int] = set()
    for i, x in enumerate(sample.operands):
        if isinstance(x, np.ndarray):
            fixed = range(x.ndim)[known.get(i, slice(0))]
            found.update(e for axis, e in enumerate(x.shape) if axis not in fixed and e != 1)
    return sorted(found)


def resized(op: Op, sample: Sample, old: int, new: int) -> list[Any] | None:
    """Return the operands with another extent; None where that would take long."""
    known, made = KNOWN.get(op.name, {}), list[Any]()
    for i, x in enumerate(sample.operands):
        if not isinstance(x, np.ndarray):
            made.append(x)
            continue
        fixed = range(x.ndim)[known.get(i, slice(0))]
        shape = tuple(new if e == old and axis not in fixed else e for axis, e in enumerate(x.shape))
        size = int(np.prod(shape))
        if size > (MOST_OF_MATRICES if shape.count(new) > 1 else MOST_ELEMENTS) or not x.size < 10**9:
            return None
        made.append(np.resize(x, shape) if x.size else np.zeros(shape, x.dtype))
    return made


SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, -1e-310, 1e-40, 1.0, -1.0)


def with_special_values(operands: list[Any], seed: int = 0) -> list[Any]:
    """Return operands where every third float is a special one."""
    rng = np.random.default_rng(seed)

    def mixed(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.dtype.kind not in TANGENT:
            return x
        chosen = rng.choice(SPECIAL, size=x.shape).astype(x.dtype)
        return np.where(rng.random(x.shape) < 0.33, chosen, x)

    with np.errstate(all="ignore"):
        return [mixed(x) for x in operands]


def offset(x: np.ndarray[Any, Any]) -> Any:
    return np.concatenate([x.ravel()[:0], np.zeros(3, x.dtype), x.ravel()])[3:].reshape(x.shape)


def turned_round(x: np.ndarray[Any, Any]) -> Any:
    return np.flip(np.flip(x).copy())


def transposed(x: np.ndarray[Any, Any]) -> Any:
    return x.T.copy().T


def with_gaps(x: np.ndarray[Any, Any]) -> Any:
    wide = np.zeros(tuple(2 * e for e in x.shape), x.dtype)
    wide[(slice(None, None, 2),) * x.ndim] = x
    return wide[(slice(None, None, 2),) * x.ndim]


def repeated(x: np.ndarray[Any, Any]) -> Any:
    return np.broadcast_to(x[:1], x.shape) if x.ndim and x.size else x


def unaligned(x: np.ndarray[Any, Any]) -> Any:
    room = np.zeros(x.nbytes + 1, np.uint8)
    made = room[1:].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


def read_only(x: np.ndarray[Any, Any]) -> Any:
    made = x.copy()
    made.flags.writeable = False
    return made


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f for f in (offset, turned_round, transposed, with_gaps, repeated, unaligned, read_only)
}


def laid(operands: list[Any], layout: str) -> list[Any]:
    """Return operands that lie otherwise in memory."""
    return [LAYOUTS[layout](x) if isinstance(x, np.ndarray) else x for x in operands]


def as_dtype(sample: Sample, dtype: str) -> Sample:
    """Return a sample with floats of another dtype."""
    wanted, floats = dtype_of(dtype).numpy, np.dtype(np.float64)
    made = tuple(
        x.astype(wanted) if isinstance(x, np.ndarray | np.generic) and x.dtype == floats else x for x in sample.operands
    )
    return Sample(made, sample.attributes, sample.differentiate)


def chosen(name: str, of: int) -> int:
    """Return a number below `of` that is always the same one for a name."""
    return zlib.crc32(name.encode()) % of


def inputs(op: Op, sample: Sample, sizes: tuple[int, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Yield operands in all sizes, plain and with special values, with a name."""
    for old in sizes_of(op, sample) or [-1]:
        for new in sizes if old >= 0 else sizes[:1]:
            operands = resized(op, sample, old, new)
            if operands is not None:
                yield f"{old} as {new}", operands
                yield f"{old} as {new}, special", with_special_values(operands, new)
