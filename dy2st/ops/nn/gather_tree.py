"""Beam search: `gather_tree` reads sequences out of the tables of chosen words and of the beams they came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.scatter_add_arrays import refuse_outside


class GatherTree(Op):
    """Sequences from `ids` and `parents`, integers [time, batch, beams]: each beam's last word, its parent's, ..."""

    name = "gather_tree"
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, ids: TensorType, parents: TensorType) -> TensorType:
        if ids.rank != 3 or parents.rank != 3:
            raise ValueError(f"gather_tree needs ids and parents of 3 axes, not {ids} and {parents}")
        return ids

    def eval(self, xp: Any, ids: Any, parents: Any) -> Any:
        if ids.shape != parents.shape or ids.ndim != 3:
            raise ValueError(
                f"gather_tree needs ids and parents of one shape of 3 axes, not {list(ids.shape)} and "
                f"{list(parents.shape)}"
            )
        refuse_outside(xp, "gather_tree", parents, 2, ids.shape[2])
        out = xp.empty_like(ids)
        beams = xp.broadcast_to(xp.arange(ids.shape[2]), ids.shape[1:])
        for step in range(ids.shape[0] - 1, -1, -1):
            out[step] = xp.take_along_axis(ids[step], beams, axis=-1)
            beams = xp.take_along_axis(parents[step], beams, axis=-1)
        return out

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.integers(0, 9, (4, 2, 3)), rng.integers(0, 3, (4, 2, 3))))
        yield Sample((np.zeros((0, 2, 3), np.int64), np.zeros((0, 2, 3), np.int64)))
