"""Attention under the names of Paddle's fused kernels, with their layouts and masks; it is computed as any other.

T. Dao, "FlashAttention-2" (2023); G. Wang et al., "FlashMask" (2024), for masks by columns; R. Child et al.,
"Generating long sequences with sparse transformers" (2019), for the one by rows.
"""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, tensor, together
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.comparison import where
from dy2st.functions.math.reduction import any as any_of
from dy2st.functions.math.reduction import logsumexp
from dy2st.functions.math.search import searchsorted
from dy2st.functions.shape.broadcasting import expand, repeat_interleave
from dy2st.functions.shape.creation import arange, full, zeros
from dy2st.functions.shape.gather_scatter import gather, put_along_axis
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.missing import missing_in
from dy2st.nn.functional.attention import scaled_dot_product_attention as scaled_dot_product_attention
from dy2st.nn.functional.dropping import dropout as drop
from dy2st.nn.functional.softmax_family import softmax
from dy2st.runtime.eager.tensor import Tensor

_NEVER = -1e30


def flash_attention(
    query: Any, key: Any, value: Any, dropout: float = 0.0, causal: bool = False, return_softmax: bool = False, *,
    fixed_seed_offset: Any = None, rng_name: str = "", training: bool = True, name: str | None = None,
    softmax_scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return the attention of [batch, length, heads, features] tensors, and its weights, or None in their place.

    >>> import dy2st as paddle
    >>> q = paddle.ones([1, 2, 1, 4])
    >>> paddle.nn.functional.flash_attention.flash_attention(q, q, q)[0].shape
    [1, 2, 1, 4]
    """
    q, k, v = together((query, key, value), "flash_attention")
    seen = _before(q.shape[1], k.shape[1]) if causal else None
    out, weights, _ = _attend(q, k, v, seen, softmax_scale, dropout if training else 0.0)
    return out, weights if return_softmax else None


def flash_attn_qkvpacked(
    qkv: Any, dropout: float = 0.0, causal: bool = False, return_softmax: bool = False, *,
    fixed_seed_offset: Any = None, rng_name: str = "", training: bool = True, name: str | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return `flash_attention` of queries, keys and values in one tensor [batch, length, groups + 2, heads, features].

    The last two of axis 2 are keys and values, each for `groups` heads of the queries.
    """
    return flash_attention(*_unpacked(qkv, "flash_attn_qkvpacked"), dropout, causal, return_softmax, training=training)


def flash_attn_unpadded(
    query: Any, key: Any, value: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: Any, max_seqlen_k: Any,
    scale: float, dropout: float = 0.0, causal: bool = False, return_softmax: bool = False,
    fixed_seed_offset: Any = None, rng_name: str = "", training: bool = True, name: str | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return the attention within sequences that stand one after another: [all lengths, heads, features].

    Sequence i has the places from `cu_seqlens[i]` to `cu_seqlens[i + 1]`.
    """
    rows, columns = _placed(query, cu_seqlens_q), _placed(key, cu_seqlens_k)
    return _within(query, key, value, rows, columns, scale, dropout if training else 0.0, causal, return_softmax)


def flash_attn_varlen_qkvpacked(
    qkv: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: Any, max_seqlen_k: Any, scale: float,
    dropout: float = 0.0, causal: bool = False, return_softmax: bool = False, fixed_seed_offset: Any = None,
    rng_name: str = "", varlen_padded: bool = True, training: bool = True, name: str | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return `flash_attn_unpadded` of one tensor [all lengths, groups + 2, heads, features].

    With `varlen_padded` each sequence has `max_seqlen` places, zeros behind its end.
    """
    q, k, v = _unpacked(qkv, "flash_attn_varlen_qkvpacked")
    longest = (max_seqlen_q, max_seqlen_k) if varlen_padded else (None, None)
    rows, columns = _placed(q, cu_seqlens_q, longest[0]), _placed(k, cu_seqlens_k, longest[1])
    return _within(q, k, v, rows, columns, scale, dropout if training else 0.0, causal, return_softmax)


def flash_attention_v3_varlen(
    query: Any, key: Any, value: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: Any, max_seqlen_k: Any,
    seqused_q: Any = None, seqused_k: Any = None, softmax_scale: float | None = None, causal: bool = False,
    qv: Any = None, q_descale: Any = None, k_descale: Any = None, v_descale: Any = None,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, num_splits: int = 1, pack_gqa: Any = None,
    sm_margin: int = 0,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return `flash_attn_unpadded`; what only the kernel of one GPU has (`qv`, scales, `softcap`) is refused."""
    for what, given in (("seqused_q", seqused_q), ("seqused_k", seqused_k), ("qv", qv), ("q_descale", q_descale),
                        ("k_descale", k_descale), ("v_descale", v_descale), ("softcap", softcap or None),
                        ("window_size", None if tuple(window_size) == (-1, -1) else window_size)):  # fmt: skip
        if given is not None:
            raise ValueError(f"flash_attention_v3_varlen: {what} is not taken here")
    scale = query.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    lengths = cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
    return flash_attn_unpadded(query, key, value, *lengths, scale, 0.0, causal)


def flashmask_attention(
    query: Any, key: Any, value: Any, startend_row_indices: Any = None, *, dropout: float = 0.0, causal: bool = False,
    window_size: Any = None, return_softmax_lse: bool = False, return_seed_offset: bool = False,
    fixed_seed_offset: Any = None, rng_name: str = "", training: bool = True, name: str | None = None,
    softmax_scale: float | None = None, block_mask: Any = None,
) -> Any:  # fmt: skip
    """Return the attention of [batch, length, heads, features] tensors where each key says which queries do not see it.

    Parameters
    ----------
    startend_row_indices
        [batch, heads or 1, keys, n] ints: queries from the first number on (n is 1, or 2 without `causal`), or from the
        first to before the second, do not see the key; without `causal` nor do those before the second of 2, or from
        the third to before the fourth of 4.
    window_size
        How many keys before and after its own place a query sees; one number stands for both.
    return_softmax_lse, return_seed_offset
        Give the logarithm of the sum of exponentials as well, [batch, heads, queries], and None.
    """
    q, k, v = together((query, key, value), "flashmask_attention")
    if block_mask is not None:
        raise ValueError("flashmask_attention: block_mask is not taken here")
    seen = _before(q.shape[1], k.shape[1]) if causal else full([1, 1], True, "bool")
    rows, columns = arange(q.shape[1]).unsqueeze(1), arange(k.shape[1]).unsqueeze(0)
    if window_size is not None:
        left, right = (window_size, window_size) if isinstance(window_size, int) else window_size
        seen = seen & (rows - columns <= left) & (causal | (columns - rows <= right))
    if startend_row_indices is not None:
        bounds = transpose(tensor(startend_row_indices, "flashmask_attention"), [0, 1, 3, 2]).unsqueeze(3)
        count = bounds.shape[2]
        if count not in ((1, 2) if causal else (2, 4)):
            raise ValueError(f"flashmask_attention: {count} bounds of a key do not go with causal={causal}")
        has_end = count == (2 if causal else 4)
        hidden = rows >= bounds[:, :, 0]
        hidden = hidden & (rows < bounds[:, :, 1]) if has_end else hidden
        if not causal:
            above = (rows >= bounds[:, :, 2]) & (rows < bounds[:, :, 3]) if has_end else rows < bounds[:, :, 1]
            hidden = hidden | above
        seen = seen & ~_for_heads(hidden, q.shape[2])
    out, _, sums = _attend(q, k, v, seen, softmax_scale, dropout if training else 0.0)
    more = [*([sums] if return_softmax_lse else []), *([None] if return_seed_offset else [])]
    return (out, *more) if more else out


def sparse_attention(
    query: Any, key: Any, value: Any, sparse_csr_offset: Any, sparse_csr_columns: Any, key_padding_mask: Any = None,
    attn_mask: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the attention of [batch, heads, length, features] tensors where each query sees a few keys.

    Row i of `sparse_csr_columns` [batch, heads, seen] are the places from `sparse_csr_offset[..., i]`
    [batch, heads, length + 1] on. Keys with a 0 in `key_padding_mask` [batch, length], and pairs with one in
    `attn_mask` [length, length], are not seen.
    """
    q, k, v = together((query, key, value), "sparse_attention")
    offset, columns = (
        cast_to(tensor(t, "sparse_attention"), dtypes.int64) for t in (sparse_csr_offset, sparse_csr_columns)
    )
    length = q.shape[2]
    flat = [-1, offset.shape[2]]
    rows = searchsorted(
        reshape(offset, flat), expand(arange(columns.shape[2]), [q.shape[0] * q.shape[1], -1]), right=True
    )
    places = (rows - 1) * length + reshape(columns, [-1, columns.shape[2]])
    empty = zeros([q.shape[0] * q.shape[1], length * length], "int32")
    seen = reshape(put_along_axis(empty, places, 1, 1), [*q.shape[:2], length, length]) > 0
    if key_padding_mask is not None:
        seen = seen & (tensor(key_padding_mask, "sparse_attention") != 0).unsqueeze(1).unsqueeze(1)
    if attn_mask is not None:
        seen = seen & (tensor(attn_mask, "sparse_attention") != 0)
    q, k, v = (transpose(x, [0, 2, 1, 3]) for x in (q, k, v))
    return transpose(_attend(q, k, v, seen, None, 0.0)[0], [0, 2, 1, 3])


def _attend(
    query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None, scale: float | None, dropout: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return out, weights and the logarithms of sums; a query that sees nothing gives zeros."""
    heads = query.shape[2]
    q, k, v = (transpose(x, [0, 2, 1, 3]) for x in (query, key, value))
    k, v = _for_heads(k, heads), _for_heads(v, heads)
    scores = matmul(q * (query.shape[-1] ** -0.5 if scale is None else scale), k, transpose_y=True)
    if seen is not None:
        scores = where(seen, scores, full([], _lowest(scores), scores.dtype))
    weights = softmax(scores)
    if seen is not None:
        weights = where(any_of(seen, -1, keepdim=True), weights, full([], 0.0, weights.dtype))
    sums = logsumexp(cast_to(scores, dtypes.float32) if scores.dtype is dtypes.float16 else scores, -1)
    out = matmul(drop(weights, dropout) if dropout else weights, v)
    return transpose(out, [0, 2, 1, 3]), weights, sums


def _lowest(scores: Tensor) -> float:
    return -6e4 if scores.dtype is dtypes.float16 else _NEVER


def _for_heads(x: Tensor, heads: Any) -> Tensor:
    """Return [batch, few heads, ...] with each head for several of the queries'."""
    ours = x.shape[1]
    return x if ours == heads or ours == 1 else repeat_interleave(x, heads // ours, 1)


def _before(queries: Any, keys: Any) -> Tensor:
    """Return which keys stand at or before the place of a query, the last query being at the last key."""
    return arange(queries).unsqueeze(1) + (keys - queries) >= arange(keys).unsqueeze(0)


def _unpacked(qkv: Any, name: str) -> tuple[Tensor, Tensor, Tensor]:
    qkv = tensor(qkv, name)
    front = list(qkv.shape[:-3])
    queries = reshape(qkv[..., :-2, :, :], [*front, (qkv.shape[-3] - 2) * qkv.shape[-2], qkv.shape[-1]])
    return queries, qkv[..., -2, :, :], qkv[..., -1, :, :]


def _placed(x: Any, bounds: Any, longest: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return for each place its sequence, its place therein, how long that is, and whether it is inside."""
    starts = cast_to(tensor(bounds, "flash_attn_unpadded"), dtypes.int64)
    places = arange(x.shape[0])
    count = starts.shape[0] - 1
    which = searchsorted(starts, places, right=True) - 1 if longest is None else places // longest
    inside = (which >= 0) & (which < count)
    which = which.clip(0, count - 1)
    start = gather(starts, which) if longest is None else which * longest
    length = gather(starts, which + 1) - gather(starts, which)
    return which, places - start, length, inside & (places - start < length)


def _within(
    query: Any, key: Any, value: Any, rows: Any, columns: Any, scale: float, dropout: float, causal: bool,
    return_softmax: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    q, k, v = together((query, key, value), "flash_attn_unpadded")
    (row, at, length, inside), (column, place, keys, known) = rows, columns
    seen = (row.unsqueeze(1) == column.unsqueeze(0)) & inside.unsqueeze(1) & known.unsqueeze(0)
    if causal:
        seen = seen & ((at - length).unsqueeze(1) >= (place - keys).unsqueeze(0))
    out, weights, _ = _attend(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), seen, scale, dropout)
    return out[0], weights if return_softmax else None


__getattr__ = missing_in(__name__)
