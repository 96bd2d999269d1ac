"""What processes send each other: blocks from each to each, tensors from one to another; and waiting for all.

`all_to_all` is its own transpose with the sizes of blocks exchanged, and so is `permute` with its pairs turned around.
`send` gives nothing that a gradient could come back through, so a tensor that it sends has none: `permute` has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
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
    on_host,
    typed,
    with_attributes,
)
from dy2st.ops.collective.world import Place, group_of, mpi_module, shown, world
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents

_TAG = 1
"""Of the messages of `send`."""


class AllToAll(SameType):
    """Blocks along an axis, one of each process: number i of process j becomes number j of process i."""

    name = "all_to_all"
    attributes = ("axis", "ranks", "at")
    linear_in = (0,)

    def eval(self, xp: Any, x: Any, *, axis: int, ranks: tuple[int, ...], at: Place) -> Any:
        def together(comm: Any, a: Any) -> Any:
            parts = blocks(a, axis, len(ranks))
            made = np.empty_like(parts)
            comm.Alltoall(as_bytes(parts), as_bytes(made))
            return joined(made, axis)

        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"all_to_all of {typed(a)}", at, lambda comm: together(comm, a)))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "all_to_all", cts[0], axis=axis, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return with_attributes(super().samples(rng), axis=0)


class AllToAllSizes(Collective):
    """As `all_to_all`, with blocks of any sizes: those that go, and those that come."""

    name = "all_to_all_sizes"
    attributes = ("axis", "goes", "comes", "ranks", "at")
    linear_in = (0,)

    def infer(self, x: TensorType, *, axis: int, goes: tuple[int, ...], comes: tuple[int, ...], ranks: tuple[int, ...],
              at: Place) -> TensorType:  # fmt: skip
        return TensorType(x.dtype, (*x.shape[:axis], sum(comes), *x.shape[axis + 1 :]))

    def eval(self, xp: Any, x: Any, *, axis: int, goes: tuple[int, ...], comes: tuple[int, ...],
             ranks: tuple[int, ...], at: Place) -> Any:  # fmt: skip
        rest: tuple[int, ...] = (*x.shape[:axis], *x.shape[axis + 1 :])
        if x.shape[axis] != sum(goes):
            raise ValueError(f"alltoall_single: blocks of {list(goes)} for {x.shape[axis]} elements")

        def together(comm: Any, a: Any) -> Any:
            rows = np.ascontiguousarray(np.moveaxis(a, axis, 0))
            made = np.empty((sum(comes), *rest), a.dtype)
            row = math.prod(rest) * a.dtype.itemsize
            counts = [[size * row for size in sizes] for sizes in (goes, comes)]
            comm.Alltoallv([as_bytes(rows)[0], counts[0]], [as_bytes(made)[0], counts[1]])
            return np.ascontiguousarray(np.moveaxis(made, 0, axis))

        row = f"{x.dtype.name}[?, {', '.join(map(str, rest))}]"
        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"all_to_all of {row}", at, lambda comm: together(comm, a)))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, goes: tuple[int, ...], comes: tuple[int, ...], ranks: tuple[int, ...],
                  at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, self.name, cts[0], axis=axis, goes=comes, comes=goes, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), {"axis": 0, "goes": (2,), "comes": (2,), **HERE})


class Permute(SameType):
    """The tensor of the process that `pairs`, (from, to), say sends to this one; zeros where none does."""

    name = "permute"
    attributes = ("pairs", "ranks", "at")
    linear_in = (0,)

    def eval(self, xp: Any, x: Any, *, pairs: tuple[tuple[int, int], ...], ranks: tuple[int, ...], at: Place) -> Any:
        rank = world().rank
        target = next((to for source, to in pairs if source == rank), None)
        source = next((source for source, to in pairs if to == rank), None)

        def alone(a: Any) -> Any:
            return np.zeros_like(a) if source is None else a.copy()

        def together(comm: Any, a: Any) -> Any:
            made = np.zeros_like(a)
            requests = [comm.Irecv(as_bytes(made), ranks.index(source))] if source is not None else []
            requests += [comm.Isend(as_bytes(a), ranks.index(target))] if target is not None else []
            for request in requests:
                request.Wait()
            return made

        return exchanged(xp, x, ranks, alone, lambda group, a: group.run(
            f"permute({pairs}) of {typed(a)}", at, lambda comm: together(comm, a)))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, pairs: tuple[tuple[int, int], ...], ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "permute", cts[0], pairs=tuple((to, source) for source, to in pairs), ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for pairs in (((0, 0),), ()):
            yield from with_attributes(super().samples(rng), pairs=pairs)


class Send(Collective):
    """Send a tensor to the process `to`, which receives it; wait until it is on its way."""

    name = "send"
    attributes = ("to", "ranks", "at")
    differentiable = False
    fresh = False

    def infer(self, x: TensorType, *, to: int, ranks: tuple[int, ...], at: Place) -> tuple[()]:
        return ()

    def eval(self, xp: Any, x: Any, *, to: int, ranks: tuple[int, ...], at: Place) -> Any:
        array = on_host(x)
        group = group_of(ranks)
        if group is None:
            raise ValueError(f"send: there is no process beside {world().rank}, {to} neither")
        with world().waiting(f"send(to {to}) of {typed(array)} at {shown(at)}"):
            group.comm.Send(as_bytes(array), ranks.index(to), _TAG)
        return ()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class Receive(SameType):
    """The tensor that the process `source` sends, which has dtype and shape of the operand."""

    name = "receive"
    attributes = ("source", "ranks", "at")
    differentiable = False

    def eval(self, xp: Any, x: Any, *, source: int, ranks: tuple[int, ...], at: Place) -> Any:
        made = np.empty(x.shape, x.dtype)
        group = group_of(ranks)
        if group is None:
            raise ValueError(f"recv: there is no process beside {world().rank}, {source} neither")
        with world().waiting(f"recv(from {source}) of {typed(made)} at {shown(at)}"):
            message = group.comm.Mprobe(ranks.index(source), _TAG, status := mpi_module().Status())
            if status.Get_count() != made.nbytes:
                raise ValueError(
                    f"recv: rank {source} sent {status.Get_count()} bytes, and {typed(made)} has {made.nbytes}"
                )
            message.Recv(as_bytes(made))
        return xp.asarray(made)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class Barrier(Collective):
    """Wait until all processes are here."""

    name = "barrier"
    attributes = ("ranks", "at")
    differentiable = False
    fresh = False

    def infer(self, *, ranks: tuple[int, ...], at: Place) -> tuple[()]:
        return ()

    def eval(self, xp: Any, *, ranks: tuple[int, ...], at: Place) -> Any:
        group = group_of(ranks)
        if group is not None:
            group.run("barrier", at, lambda comm: None)  # comparing what they do, all wait for each other
        return ()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((), HERE)


class Posted:
    """A message that was begun: its memory stays as it is until it is through."""

    def __init__(self, request: Any, keeps: Any, what: str):
        self._request, self._keeps, self._what = request, keeps, what

    def wait(self) -> None:
        """Wait until it is through."""
        with world().waiting(self._what):
            self._request.Wait()

    def is_done(self) -> bool:
        """Return whether it is through."""
        return bool(self._request.Test())


def posted(ranks: tuple[int, ...], array: Any, other: int, what: str, is_sent: bool) -> Posted:
    """Begin to send an array to another process, or to receive one from it."""
    comm = world().group(ranks).comm
    begin = comm.Isend if is_sent else comm.Irecv
    return Posted(begin(as_bytes(array), ranks.index(other), _TAG), array, what)
