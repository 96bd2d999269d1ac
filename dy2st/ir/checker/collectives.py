"""Type rules of what several processes do together."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.checker.effects import at_line
from dy2st.ir.checker.shapes import typed
from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.types import TensorType, Type
from dy2st.shapes import divide

_MOST_RANKS = 1 << 20


def _ranks(g: TypedOperation) -> tuple[int, ...]:
    ranks = g.wholes("ranks", 0, _MOST_RANKS)
    g.require(bool(ranks) and list(ranks) == sorted(set(ranks)), "ranks do not ascend")
    at_line(g)
    return ranks


def _rank(g: TypedOperation, name: str) -> None:
    g.require(g.attribute(name) in _ranks(g), f"{name} is none of the ranks")


@rule("all_reduce", 1)
def _all_reduce(g: TypedOperation) -> Sequence[Type]:
    _ranks(g)
    g.text("reduction", "sum", "max", "min", "prod")
    return (g.tensor(0),)


@rule("reduce_to broadcast_from", 1)
def _rooted(g: TypedOperation) -> Sequence[Type]:
    _rank(g, "root")
    return (g.tensor(0),)


@rule("copy_to_parts sum_of_parts", 1)
def _same(g: TypedOperation) -> Sequence[Type]:
    _ranks(g)
    return (g.tensor(0),)


@rule("all_gather joined_blocks", 1)
def _all_gather(g: TypedOperation) -> Sequence[Type]:
    x, axis = _along_axis(g)
    return (TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] * len(_ranks(g)), *x.shape[axis + 1 :])),)


@rule("reduce_scatter own_block", 1)
def _reduce_scatter(g: TypedOperation) -> Sequence[Type]:
    x, axis = _along_axis(g)
    extent, count = x.shape[axis], len(_ranks(g))
    part = divide(extent, count)
    g.require(part is not None or not isinstance(extent, int), f"{count} ranks do not share {extent} elements")
    return (typed(x.dtype, (*x.shape[:axis], part, *x.shape[axis + 1 :])),)


@rule("all_to_all", 1)
def _all_to_all(g: TypedOperation) -> Sequence[Type]:
    return (_along_axis(g)[0],)


def _along_axis(g: TypedOperation) -> tuple[TensorType, int]:
    x = g.tensor(0, least=1)
    _ranks(g)
    return x, g.axis("axis", len(x.shape))


@rule("all_to_all_sizes", 1)
def _all_to_all_sizes(g: TypedOperation) -> Sequence[Type]:
    x, axis = _along_axis(g)
    count = len(_ranks(g))
    goes, comes = g.wholes("goes", 0, 2**31, count), g.wholes("comes", 0, 2**31, count)
    g.equal(x.shape[axis], sum(goes))
    return (TensorType(x.dtype, (*x.shape[:axis], sum(comes), *x.shape[axis + 1 :])),)


@rule("permute", 1)
def _permute(g: TypedOperation) -> Sequence[Type]:
    ranks, pairs = _ranks(g), g.pairs("pairs", len(g.sequence("pairs")))
    for side in (0, 1):
        found = [pair[side] for pair in pairs]
        g.require(len(set(found)) == len(found) and set(found) <= set(ranks), "pairs are no permutation of ranks")
    return (g.tensor(0),)


@rule("send", 1)
def _send(g: TypedOperation) -> Sequence[Type]:
    _rank(g, "to")
    g.tensor(0)
    return ()


@rule("receive", 1)
def _receive(g: TypedOperation) -> Sequence[Type]:
    _rank(g, "source")
    return (g.tensor(0),)


@rule("barrier", 0)
def _barrier(g: TypedOperation) -> Sequence[Type]:
    _ranks(g)
    return ()
