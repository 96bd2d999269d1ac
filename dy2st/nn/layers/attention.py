"""Multi-head attention (Vaswani et al., "Attention is all you need", 2017)."""

from __future__ import annotations

from typing import Any, NamedTuple

from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import zeros
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.nn.composite_layer import composite_layer
from dy2st.nn.functional.attention import attend
from dy2st.nn.layer import Layer
from dy2st.nn.layers.linear import Linear
from dy2st.runtime.eager.tensor import Tensor


class Cache(NamedTuple):
    """Keys and values [batch, heads, length, features] so far, to which each call adds its own."""

    k: Tensor
    v: Tensor


class StaticCache(NamedTuple):
    """Keys and values that stay as they are: those of the memory that a decoder looks at."""

    k: Tensor
    v: Tensor


class MultiHeadAttention(Layer):
    """Attention in `num_heads` subspaces of `embed_dim / num_heads` features.

    Called with (query, key=None, value=None, attn_mask=None, cache=None): the key is by default the query, the value
    the key. Returns the output [batch, length, embed_dim]; with `need_weights` also the weights, with a cache also the
    cache as it is after the call.

    >>> import dy2st as paddle
    >>> attention = paddle.nn.MultiHeadAttention(8, 2)
    >>> attention(paddle.ones([3, 5, 8])).shape
    [3, 5, 8]
    """

    Cache, StaticCache = Cache, StaticCache

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, kdim: int | None = None, vdim: int | None = None,
        need_weights: bool = False, weight_attr: Any = None, bias_attr: Any = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiHeadAttention: embed_dim {embed_dim} does not divide into {num_heads} heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    @composite_layer
    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, attn_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        key = query if key is None else key
        value = key if value is None else value
        q = self._heads(self.q_proj(query))
        if isinstance(cache, StaticCache):
            k, v = cache
        else:
            k, v = self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        if isinstance(cache, Cache):
            k, v = concat([cache.k, k], 2), concat([cache.v, v], 2)
            cache = Cache(k, v)
        out, weights = attend(q, k, v, attn_mask, self.dropout if self.training else 0.0)
        out = transpose(out, [0, 2, 1, 3])
        out = self.out_proj(reshape(out, [*out.shape[:2], self.embed_dim]))
        found = [out, *([weights] if self.need_weights else []), *([cache] if cache is not None else [])]
        return out if len(found) == 1 else tuple(found)

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: Any = Cache) -> Any:
        """Return a cache: of the projected key and value (`StaticCache`), an empty one, or one of given tensors."""
        if type is StaticCache:
            value = key if value is None else value
            return StaticCache(self._heads(self.k_proj(key)), self._heads(self.v_proj(value)))
        if value is not None:
            return Cache(key, value)
        empty = [key.shape[0], self.num_heads, 0, self.head_dim]
        return Cache(zeros(empty, key.dtype), zeros(empty, key.dtype))

    def _heads(self, x: Tensor) -> Tensor:
        return transpose(reshape(x, [*x.shape[:2], self.num_heads, self.head_dim]), [0, 2, 1, 3])

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"
