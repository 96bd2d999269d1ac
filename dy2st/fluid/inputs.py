"""`fluid.embedding` and `fluid.one_hot`: the forms of 1.7 whose ids have no last axis of 1."""

from __future__ import annotations

from typing import Any

from dy2st.nn.create_parameter import create_parameter
from dy2st.nn.functional.lookup import embedding as lookup
from dy2st.nn.functional.lookup import one_hot as modern_one_hot
from dy2st.runtime.eager.tensor import Tensor


def embedding(
    input: Tensor, size: Any, is_sparse: bool = False, is_distributed: bool = False, padding_idx: int | None = None,
    param_attr: Any = None, dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """Return rows of a new table of shape `size`, one for each id of `input`."""
    table = create_parameter(size, dtype, attr=param_attr)
    if table is None:
        raise ValueError("embedding: param_attr=False would leave no table to look up")
    return lookup(input, table, padding_idx if padding_idx is None else padding_idx % size[0])


def one_hot(input: Any, depth: int, allow_out_of_range: bool = False) -> Tensor:
    """Return float32 vectors of `depth` elements, one for each id.

    >>> import numpy as np, dy2st.fluid as fluid
    >>> fluid.one_hot(np.array([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return modern_one_hot(input, depth)
