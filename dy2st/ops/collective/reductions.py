"""`all_reduce`, and what is made of sums that not everybody needs: `reduce` to one process, `reduce_scatter` in parts.

As linear functions of the tensors of all processes, `all_reduce` (a sum) is its own transpose, `broadcast` and `reduce`
are each other's, and `all_gather` and `reduce_scatter`: a derivative is that of the sum of what all processes
derive. bool tensors add up as they do in NumPy (or), multiply likewise (and).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.collective.collective_base import (
    HERE,
    Collective,
    SameType,
    as_bytes,
    blocks,
    emitted,
    exchanged,
    joined,
    typed,
    with_attributes,
)
from dy2st.ops.collective.world import Place, mpi_module
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.shapes import divide

REDUCTIONS = ("sum", "max", "min", "prod")
_ON_BOOLS = {"sum": "LOR", "max": "LOR", "min": "LAND", "prod": "LAND"}


def reduced(comm: Any, x: Any, reduction: str) -> Any:
    """Return an array reduced over all processes of a communicator."""
    if x.dtype.kind == "c" and reduction in ("max", "min"):
        raise TypeError(f"all_reduce: complex numbers have no {reduction}")
    given = added_up_as(x)
    made = np.empty_like(given)
    comm.Allreduce(given, made, mpi_operation(given, reduction))
    return made.astype(x.dtype, copy=False)


def added_up_as(x: Any) -> Any:
    """Return an array in the dtype in which it is added up: float32 for floats of 2 bytes, which MPI does not know."""
    return x if x.dtype.kind in "biufc" and x.dtype != np.float16 else x.astype(np.float32)


def mpi_operation(x: Any, reduction: str) -> Any:
    """Return MPI's name for a reduction of an array."""
    return getattr(mpi_module(), _ON_BOOLS[reduction] if x.dtype.kind == "b" else reduction.upper())


class AllReduce(SameType):
    """The sum (or product, maximum, minimum) of the tensors of all processes, element by element.

    The sum is linear; the op does not say so, as a tape forgets the elements of what is, which the maximum needs.
    """

    name = "all_reduce"
    attributes = ("reduction", "ranks", "at")

    def eval(self, xp: Any, x: Any, *, reduction: str, ranks: tuple[int, ...], at: Place) -> Any:
        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"all_reduce({reduction}) of {typed(a)}", at, lambda comm: reduced(comm, a, reduction)))  # fmt: skip

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            *, reduction: str, ranks: tuple[int, ...], at: Place) -> Any:  # fmt: skip
        (dx,) = tangents
        if dx is None:
            return None
        if reduction == "prod":
            raise AutodiffError("all_reduce of products has no derivative: add up logarithms")
        if reduction == "sum":
            return b.emit(self, [dx], {"reduction": "sum", "ranks": ranks, "at": at})
        hits = b.cast(b.eq(primals[0], outs[0]), dtype=tensor_type(dx).dtype)  # of several ranks, each has its share
        share = b.div(hits, b.emit(self, [hits], {"reduction": "sum", "ranks": ranks, "at": at}))
        return b.emit(self, [b.mul(b.detach(share), dx)], {"reduction": "sum", "ranks": ranks, "at": at})

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, reduction: str, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "all_reduce", cts[0], reduction="sum", ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for reduction in REDUCTIONS:
            yield Sample((rng.normal(size=(2, 3)),), {"reduction": reduction, **HERE}, reduction != "prod")
        yield Sample((np.ones(3, bool),), {"reduction": "sum", **HERE})
        yield Sample((np.asarray(rng.normal()),), {"reduction": "sum", **HERE})


class Reduce(SameType):
    """The sum of the tensors of all processes where the rank is `root`; zeros elsewhere."""

    name = "reduce_to"
    attributes = ("root", "ranks", "at")
    linear_in = (0,)

    def eval(self, xp: Any, x: Any, *, root: int, ranks: tuple[int, ...], at: Place) -> Any:
        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"reduce(to {root}) of {typed(a)}", at, lambda comm: _reduced_to(comm, a, ranks.index(root))))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, root: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "broadcast_from", cts[0], root=root, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return with_attributes(super().samples(rng), root=0)


class BroadcastFrom(SameType):
    """The tensor of the process `root`; the others say by theirs which dtype and shape it has."""

    name = "broadcast_from"
    attributes = ("root", "ranks", "at")
    linear_in = (0,)

    def eval(self, xp: Any, x: Any, *, root: int, ranks: tuple[int, ...], at: Place) -> Any:
        def together(comm: Any, a: Any) -> Any:
            made = a.copy()
            comm.Bcast(as_bytes(made), ranks.index(root))
            return made

        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"broadcast(from {root}) of {typed(a)}", at, lambda comm: together(comm, a)))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, root: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "reduce_to", cts[0], root=root, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return with_attributes(super().samples(rng), root=0)


class AllGather(Collective):
    """The tensors of all processes, one behind the other along an axis."""

    name = "all_gather"
    attributes = ("axis", "ranks", "at")
    linear_in = (0,)

    def infer(self, x: TensorType, *, axis: int, ranks: tuple[int, ...], at: Place) -> TensorType:
        return TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] * len(ranks), *x.shape[axis + 1 :]))

    def eval(self, xp: Any, x: Any, *, axis: int, ranks: tuple[int, ...], at: Place) -> Any:
        def together(comm: Any, a: Any) -> Any:
            made = np.empty((len(ranks), *a.shape), a.dtype)
            comm.Allgather(as_bytes(a), as_bytes(made))
            return joined(made, axis)

        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"{self.name} of {typed(a)}", at, lambda comm: together(comm, a)))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "reduce_scatter", cts[0], axis=axis, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return with_attributes(super().samples(rng), axis=1)


class ReduceScatter(Collective):
    """The block of this process, along an axis, of the sum of the tensors of all processes."""

    name = "reduce_scatter"
    attributes = ("axis", "ranks", "at")
    linear_in = (0,)

    def infer(self, x: TensorType, *, axis: int, ranks: tuple[int, ...], at: Place) -> TensorType:
        part = divide(x.shape[axis], len(ranks))
        if part is None and isinstance(x.shape[axis], int):
            raise ValueError(f"{self.name}: {len(ranks)} processes do not share {x.shape[axis]} elements evenly")
        shape: Any = (*x.shape[:axis], part, *x.shape[axis + 1 :])
        return TensorType(x.dtype, shape)

    def eval(self, xp: Any, x: Any, *, axis: int, ranks: tuple[int, ...], at: Place) -> Any:
        def together(comm: Any, a: Any) -> Any:
            parts = blocks(added_up_as(a), axis, len(ranks))
            made = np.empty(parts.shape[1:], parts.dtype)
            comm.Reduce_scatter_block(parts, made, mpi_operation(parts, "sum"))
            return made.astype(a.dtype, copy=False)

        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"reduce_scatter of {typed(a)}", at, lambda comm: together(comm, a)))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "all_gather", cts[0], axis=axis, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return with_attributes(super().samples(rng), axis=0)


def _reduced_to(comm: Any, x: Any, place: int) -> Any:
    made = reduced(comm, x, "sum")
    return made if comm.rank == place else np.zeros_like(made)
