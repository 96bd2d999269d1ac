"""What ops of several processes have in common: ranks, the user's line, arrays as MPI takes them.

`ranks` are the processes of the group, ascending. A tensor on a CUDA device goes by the memory of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.collective.world import Group, group_of, mpi_module
from dy2st.ops.core.base import Op, Sample

HERE: dict[str, Any] = {"ranks": (0,), "at": ("", 0)}
"""The attributes of samples: a group of one process, which this is."""


class Collective(Op):
    """An op that the processes of a group do together, at the same point of their ordered effects."""

    abstract = True
    effect = True
    exchanges = True
    may_raise = True
    fresh = True
    place = "at"

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), HERE)
        yield Sample((rng.normal(size=(0, 3)),), HERE)


class SameType(Collective):
    """A collective whose result has the type of its operand."""

    abstract = True

    def infer(self, x: TensorType, **_: Any) -> TensorType:
        return x


def exchanged(
    xp: Any, x: Any, ranks: tuple[int, ...], alone: Callable[[Any], Any], together: Callable[[Group, Any], Any]
) -> Any:  # fmt: skip
    """Return what a group makes of an array, on the device where it is: alone, or together with others."""
    group, array = group_of(ranks), on_host(x)
    return xp.asarray(alone(array) if group is None else together(group, array))


def on_host(x: Any) -> Any:
    """Return an array as MPI takes it: contiguous, in memory of the host."""
    array: Any = x.get() if hasattr(x, "get") else x
    return np.ascontiguousarray(array).reshape(array.shape)


def typed(x: Any) -> str:
    """Return dtype and shape of an array, as errors say it."""
    return f"{x.dtype.name}[{', '.join(map(str, x.shape))}]"


def as_bytes(x: Any) -> list[Any]:
    """Return a contiguous array as MPI takes one whose elements it only moves."""
    return [x.reshape(-1).view(np.uint8) if x.size else np.empty(0, np.uint8), mpi_module().BYTE]


def blocks(x: Any, axis: int, count: int) -> Any:
    """Return an array as `count` blocks along an axis, one after another in memory."""
    if x.shape[axis] % count:
        raise ValueError(f"{x.shape[axis]} elements along axis {axis} are not shared evenly by {count} processes")
    shape = (*x.shape[:axis], count, x.shape[axis] // count, *x.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(x.reshape(shape), axis, 0))


def joined(x: Any, axis: int) -> Any:
    """Return blocks, one after another in memory, as one array along an axis."""
    moved = np.moveaxis(x, 0, axis)
    count, extent = moved.shape[axis : axis + 2]
    return np.ascontiguousarray(moved).reshape(*moved.shape[:axis], count * extent, *moved.shape[axis + 2 :])


def emitted(b: Builder, name: str, x: Value, **attributes: Any) -> list[Value]:
    """Emit a collective of one operand, as a rule returns it."""
    return [b.emit(name, [x], attributes)]


def with_attributes(samples: Iterator[Sample], **more: Any) -> Iterator[Sample]:
    """Yield samples with further attributes."""
    for sample in samples:
        yield Sample(sample.operands, {**more, **sample.attributes}, sample.differentiate)
