"""A choice by element between two tensors or numbers."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import op, pair
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_WHERE = op("where")


def piecewise(condition: Tensor, x: Any, y: Any) -> Tensor:
    """Return x where the condition holds, else y; at least one of the two is a tensor."""
    return apply(_WHERE, condition, *pair(x, y, "where"))
