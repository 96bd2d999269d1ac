"""Attention: means of values, weighted by how well a query fits their keys (Vaswani et al., 2017)."""

from __future__ import annotations

from math import inf
from typing import Any

from dy2st.functions.core.operands import cast_to, together
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.comparison import where
from dy2st.functions.shape.broadcasting import repeat_interleave
from dy2st.functions.shape.creation import full, ones
from dy2st.functions.shape.diagonals import tril
from dy2st.functions.shape.manipulation import transpose
from dy2st.nn.functional.dropping import dropout
from dy2st.nn.functional.softmax_family import softmax
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.tensor import Tensor

MASKED = 1e9
"""What is taken from a score where a bool or int mask says "not this one"."""


@composite
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    training: bool = True, backend: str | None = None, scale: float | None = None, enable_gqa: bool = True,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return softmax(q k^T * scale + mask) v for [batch, length, heads, features] tensors.

    `scale` is 1 / sqrt(features) by default. A bool mask says which places are seen, a float mask is added to the
    scores; it broadcasts to [batch, heads, queries, keys]. With `is_causal` a query sees keys up to its own place. Keys
    and values may have fewer heads, each for several of the query's (`enable_gqa`). `backend` changes nothing.

    >>> import dy2st as paddle
    >>> q = paddle.ones([1, 2, 1, 4])
    >>> paddle.nn.functional.scaled_dot_product_attention(q, q, q).shape
    [1, 2, 1, 4]
    """
    query, key, value = together((query, key, value), "scaled_dot_product_attention")
    for what, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 4:
            raise ValueError(
                f"scaled_dot_product_attention: the {what} must be [batch, length, heads, features], not {x.shape}"
            )
    seen = tril(ones([query.shape[1], key.shape[1]], "bool")) if is_causal else None
    q, k, v = (transpose(x, [0, 2, 1, 3]) for x in (query, key, value))
    k, v = (_shared_heads(x, q, enable_gqa) for x in (k, v))
    out, _ = attend(q, k, v, attn_mask, dropout_p if training else 0.0, scale, seen)
    return transpose(out, [0, 2, 1, 3])


def _shared_heads(x: Tensor, query: Tensor, shared: bool) -> Tensor:
    """Return keys or values with as many heads as the query, each repeated."""
    ours, wanted = x.shape[1], query.shape[1]
    if not (isinstance(ours, int) and isinstance(wanted, int)) or ours == wanted:
        return x
    if not shared or ours < 1 or wanted % ours:
        raise ValueError(f"scaled_dot_product_attention: {wanted} heads of the query do not go with {ours} of keys")
    return repeat_interleave(x, wanted // ours, 1)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, drop: float, scale: float | None = None,
    seen: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the attention of [batch, heads, length, features] tensors and its weights.

    What is not `seen` has no weight, whatever its score is; a mask is added to scores.
    """
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = matmul(query * factor, key, transpose_y=True)
    if mask is not None:
        scores = scores + as_added(mask, query)
    if seen is not None:
        scores = where(seen, scores, full([], -inf, scores.dtype))
    weights = softmax(scores)
    if drop:
        weights = dropout(weights, drop)
    return matmul(weights, value), weights


def as_added(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask as what is added to scores: 0 where a bool or int mask is true, very negative elsewhere."""
    if mask.dtype.is_bool or mask.dtype.is_integer:
        return (cast_to(mask, like.dtype) - 1.0) * MASKED
    return cast_to(mask, like.dtype)
