"""Layers of models that rank and recognise: a table of rows, a look ahead along a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.nn.functional.padding import pad
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.nn.layers import _activated, _floating, _known, _Owner, embedding


def sparse_embedding(
    input: Tensor, size: Sequence[int], padding_idx: int | None = None, is_test: bool = False, entry: Any = None,
    table_class: str = "MemorySparseTable", param_attr: Any = None, dtype: Any = "float32", slot: Any = None,
) -> Tensor:  # fmt: skip
    """Return rows of a table of `size`: it is kept here, not by servers."""
    return embedding(input, size, padding_idx=padding_idx, param_attr=param_attr, dtype=dtype)


def row_conv(input: Tensor, future_context_size: int, param_attr: Any = None, act: str | None = None) -> Tensor:
    """Return, for [batch, time, features], the sum of a step and the next ones, each feature with its weights.

    D. Amodei et al., "Deep Speech 2" (2015), section 3.6.
    """
    owner = _Owner("row_conv", None, _floating(input, "row_conv"))
    (width,) = _known([input.shape[-1]], "row_conv", "the features")
    weight = owner.parameter([future_context_size + 1, width], param_attr)
    wide = pad(input, [0, future_context_size], data_format="NLC")
    total: Any = None
    for step in range(future_context_size + 1):
        part = wide[:, step : step + input.shape[1]] * weight[step]
        total = part if total is None else total + part
    return _activated(total, act)
