"""A softmax with a mask, and a mean by number, as Paddle's kernels name them."""

from __future__ import annotations

from math import inf
from typing import Any

from dy2st.functions.core.operands import tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.shape.creation import arange, full
from dy2st.nn.functional.softmax_family import softmax
from dy2st.runtime.eager.tensor import Tensor


def softmax_mask_fuse(x: Any, mask: Any, name: str | None = None) -> Tensor:
    """Return softmax(x + mask) along the last axis."""
    return softmax(x + mask)


def softmax_mask_fuse_upper_triangle(x: Any) -> Tensor:
    """Return the softmax along the last axis, in which row i has the first i + 1 elements only.

    >>> import dy2st as paddle
    >>> paddle.incubate.softmax_mask_fuse_upper_triangle(paddle.zeros([1, 1, 2, 2])).tolist()
    [[[[1.0, 0.0], [0.5, 0.5]]]]
    """
    x = tensor(x, "softmax_mask_fuse_upper_triangle")
    seen = arange(x.shape[-2]).unsqueeze(1) >= arange(x.shape[-1])
    return softmax(where(seen, x, full([], -inf, x.dtype)))


def identity_loss(x: Any, reduction: Any = "none") -> Tensor:
    """Return the sum (0 or "sum"), the mean (1 or "mean") of a loss, or it as it is (2 or "none")."""
    kinds: dict[Any, str] = {0: "sum", 1: "mean", 2: "none"}
    kind = kinds.get(reduction, reduction)
    if kind not in kinds.values():
        raise ValueError(f"identity_loss: reduction is 'sum', 'mean' or 'none', not {reduction!r}")
    return x if kind == "none" else getattr(x, str(kind))()
