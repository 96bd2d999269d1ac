"""What processes exchange that have parts of one model: a tensor that all of them have equally counts once.

In `reductions.py` a derivative is that of the sum of what all processes derive. Where all compute the same loss from
parts of weights, that would count it once a process. Of these ops, one side is a tensor that is the same everywhere:

    copy_to_parts     the same tensor --> each part's own use of it      transpose: sum_of_parts
    sum_of_parts      parts of a sum  --> their sum, the same tensor     transpose: copy_to_parts
    own_block         the same tensor --> the block of each process      transpose: joined_blocks
    joined_blocks     blocks          --> the same tensor                transpose: own_block

They are f and g of Shoeybi et al., "Megatron-LM", 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ops.collective.collective_base import (
    HERE,
    SameType,
    blocks,
    emitted,
    exchanged,
    on_host,
    typed,
)
from dy2st.ops.collective.reductions import AllGather, ReduceScatter, reduced
from dy2st.ops.collective.world import Place, world
from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Tangents


class CopyToParts(SameType):
    """A tensor that is the same in all processes, for each to use with its part of the weights."""

    name = "copy_to_parts"
    attributes = ("ranks", "at")
    linear_in = (0,)

    def eval(self, xp: Any, x: Any, *, ranks: tuple[int, ...], at: Place) -> Any:
        return xp.array(x)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "sum_of_parts", cts[0], ranks=ranks, at=at)


class SumOfParts(SameType):
    """The sum of the tensors of all processes, which is the same in all of them."""

    name = "sum_of_parts"
    attributes = ("ranks", "at")
    linear_in = (0,)

    def eval(self, xp: Any, x: Any, *, ranks: tuple[int, ...], at: Place) -> Any:
        return exchanged(xp, x, ranks, np.copy, lambda group, a: group.run(
            f"sum_of_parts of {typed(a)}", at, lambda comm: reduced(comm, a, "sum")))  # fmt: skip

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "copy_to_parts", cts[0], ranks=ranks, at=at)


class OwnBlock(ReduceScatter):
    """The block of this process, along an axis, of a tensor that is the same in all processes."""

    name = "own_block"

    def eval(self, xp: Any, x: Any, *, axis: int, ranks: tuple[int, ...], at: Place) -> Any:
        found: Any = blocks(on_host(x), axis, len(ranks))[ranks.index(world().rank)]
        return xp.array(found)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "joined_blocks", cts[0], axis=axis, ranks=ranks, at=at)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), {"axis": 0, **HERE})
        yield Sample((rng.normal(size=(3, 0)),), {"axis": 1, **HERE})


class JoinedBlocks(AllGather):
    """The blocks of all processes along an axis as one tensor, which is the same in all of them."""

    name = "joined_blocks"

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, ranks: tuple[int, ...], at: Place) -> Tangents:  # fmt: skip
        assert cts[0] is not None
        return emitted(b, "own_block", cts[0], axis=axis, ranks=ranks, at=at)
