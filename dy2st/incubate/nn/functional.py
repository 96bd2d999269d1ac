"""`paddle.incubate.nn.functional`: steps that one kernel does elsewhere, here those that they are made of."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import tensor
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.math import cos as cosine
from dy2st.functions.math.math import sin as sine
from dy2st.functions.shape.concat_split import chunk, concat, stack
from dy2st.functions.shape.creation import arange
from dy2st.functions.shape.manipulation import flatten, reshape, transpose
from dy2st.missing import missing_in
from dy2st.nn import functional as F
from dy2st.nn.functional.attention import attend
from dy2st.nn.functional.flash_attention import flash_attention
from dy2st.runtime.eager.tensor import Tensor

swiglu = F.swiglu


def fused_matmul_bias(
    x: Any, y: Any, bias: Any = None, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None
) -> Tensor:
    """Return x @ y + bias."""
    made = matmul(x, y, transpose_x, transpose_y)
    return made if bias is None else made + bias


def fused_linear(
    x: Any, weight: Any, bias: Any = None, transpose_weight: bool = False, name: str | None = None
) -> Tensor:
    """Return x @ weight + bias; with `transpose_weight` the weight is [out, in].

    >>> import dy2st as paddle
    >>> paddle.incubate.nn.functional.fused_linear(paddle.ones([1, 2]), paddle.ones([2, 3])).tolist()
    [[2.0, 2.0, 2.0]]
    """
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


def fused_linear_activation(
    x: Any, y: Any, bias: Any, trans_x: bool = False, trans_y: bool = False, activation: str | None = None
) -> Tensor:
    """Return an activation ("gelu", "relu", or none) of x @ y + bias."""
    return _activated(fused_matmul_bias(x, y, bias, trans_x, trans_y), activation)


def fused_bias_act(x: Any, bias: Any = None, *quantizing: Any, act_method: str = "gelu", **keywords: Any) -> Tensor:
    """Return an activation of x + bias; "swiglu" and "geglu" multiply one half with the activation of the other."""
    if any(value is not None for value in quantizing) or keywords.get("quant_scale", -1) > 0:
        raise ValueError("fused_bias_act: there are no quantized products here")
    x = tensor(x, "fused_bias_act") if bias is None else x + bias
    if act_method in ("swiglu", "geglu"):
        first, second = chunk(x, 2, -1)
        return (F.silu if act_method == "swiglu" else F.gelu)(first) * second
    return _activated(x, act_method)


def fused_dropout_add(
    x: Any, y: Any, p: float = 0.5, training: bool = True, mode: str = "upscale_in_train", name: str | None = None
) -> Tensor:
    """Return dropout(x) + y."""
    return F.dropout(x, p, training=training, mode=mode) + y


def fused_bias_dropout_residual_layer_norm(
    x: Any, residual: Any, bias: Any = None, ln_scale: Any = None, ln_bias: Any = None, dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5, training: bool = True, mode: str = "upscale_in_train", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return layer_norm(residual + dropout(x + bias)) over the last axis."""
    x = x if bias is None else x + bias
    total = residual + F.dropout(x, dropout_rate, training=training, mode=mode)
    return F.layer_norm(total, total.shape[-1:], ln_scale, ln_bias, ln_epsilon)


def fused_layer_norm(
    x: Any, norm_weight: Any, norm_bias: Any, epsilon: float, residual_alpha: float = 1.0, begin_norm_axis: int = 1,
    bias: Any = None, residual: Any = None, quant_scale: float = -1, quant_round_type: int = 0,
    quant_max_bound: float = 0, quant_min_bound: float = 0,
) -> Any:  # fmt: skip
    """Return the layer norm of x + bias + residual_alpha * residual, and with a residual this sum as well."""
    total = _summed(x, bias, residual, residual_alpha, quant_scale)
    shape = total.shape[begin_norm_axis:]
    weight, shift = (None if w is None else reshape(w, shape) for w in (norm_weight, norm_bias))
    made = F.layer_norm(total, shape, weight, shift, epsilon)
    return made if residual is None else (made, total)


def fused_rms_norm(
    x: Any, norm_weight: Any, norm_bias: Any, epsilon: float, begin_norm_axis: int = 1, bias: Any = None,
    residual: Any = None, quant_scale: float = -1, quant_round_type: int = 0, quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return x + bias + residual divided by the root of the mean of its squares, times a weight; and that sum."""
    total = _summed(x, bias, residual, 1.0, quant_scale)
    axes = list(range(begin_norm_axis % total.ndim, total.ndim))
    made = total * ((total * total).mean(axes, keepdim=True) + epsilon).rsqrt()
    made = made if norm_weight is None else made * norm_weight
    return made if norm_bias is None else made + norm_bias, total


def _summed(x: Any, bias: Any, residual: Any, alpha: float, quant_scale: float) -> Tensor:
    if quant_scale > 0:
        raise ValueError("a fused norm gives no quantized numbers here")
    x = tensor(x, "fused norm") if bias is None else x + bias
    return x if residual is None else x + alpha * residual


def fused_feedforward(
    x: Any, linear1_weight: Any, linear2_weight: Any, linear1_bias: Any = None, linear2_bias: Any = None,
    ln1_scale: Any = None, ln1_bias: Any = None, ln2_scale: Any = None, ln2_bias: Any = None,
    dropout1_rate: float = 0.5, dropout2_rate: float = 0.5, activation: str = "relu", ln1_epsilon: float = 1e-5,
    ln2_epsilon: float = 1e-5, pre_layer_norm: bool = False, training: bool = True, mode: str = "upscale_in_train",
    ring_id: int = -1, add_residual: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return x + dropout(linear2(dropout(activation(linear1(x))))), normalised before or after."""
    width = x.shape[-1:]
    hidden = F.layer_norm(x, width, ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    hidden = _activated(fused_matmul_bias(hidden, linear1_weight, linear1_bias), activation)
    hidden = F.dropout(hidden, dropout1_rate, training=training, mode=mode)
    out = F.dropout(
        fused_matmul_bias(hidden, linear2_weight, linear2_bias), dropout2_rate, training=training, mode=mode
    )
    out = x + out if add_residual else out
    return out if pre_layer_norm else F.layer_norm(out, width, ln2_scale, ln2_bias, ln2_epsilon)


def fused_multi_head_attention(
    x: Any, qkv_weight: Any, linear_weight: Any, pre_layer_norm: bool = False, pre_ln_scale: Any = None,
    pre_ln_bias: Any = None, ln_scale: Any = None, ln_bias: Any = None, pre_ln_epsilon: float = 1e-5,
    qkv_bias: Any = None, linear_bias: Any = None, cache_kv: Any = None, attn_mask: Any = None,
    dropout_rate: float = 0.5, attn_dropout_rate: float = 0.5, ln_epsilon: float = 1e-5, training: bool = True,
    mode: str = "upscale_in_train", ring_id: int = -1, add_residual: bool = True, num_heads: int = -1,
    transpose_qkv_wb: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Return x + dropout(linear(attention of x)), normalised before or after; with `cache_kv` the longer one as well.

    `qkv_weight` is [3, heads, features of a head, features], or [features, 3 * features] with `transpose_qkv_wb`.
    """
    batch, length, width = x.shape
    inner = F.layer_norm(x, [width], pre_ln_scale, pre_ln_bias, pre_ln_epsilon) if pre_layer_norm else x
    if transpose_qkv_wb:
        weight, heads, size = qkv_weight, num_heads, width // num_heads
    else:
        heads, size = qkv_weight.shape[1:3]
        weight = transpose(reshape(qkv_weight, [3 * heads * size, width]), [1, 0])
    packed = fused_matmul_bias(inner, weight, None if qkv_bias is None else flatten(qkv_bias))
    q, k, v = transpose(reshape(packed, [batch, length, 3, heads, size]), [2, 0, 3, 1, 4])
    if cache_kv is not None:
        k, v = concat([cache_kv[0], k], 2), concat([cache_kv[1], v], 2)
    out, _ = attend(q, k, v, attn_mask, attn_dropout_rate if training else 0.0)
    out = fused_matmul_bias(
        reshape(transpose(out, [0, 2, 1, 3]), [batch, length, heads * size]), linear_weight, linear_bias
    )
    out = F.dropout(out, dropout_rate, training=training, mode=mode)
    out = x + out if add_residual else out
    out = out if pre_layer_norm else F.layer_norm(out, [width], ln_scale, ln_bias, ln_epsilon)
    return out if cache_kv is None else (out, stack([k, v]))


def fused_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scaling_factor: float | None = None, training: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return `scaled_dot_product_attention`."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, training,
                                          scale=scaling_factor)  # fmt: skip


def variable_length_memory_efficient_attention(
    query: Any, key: Any, value: Any, seq_lens: Any, kv_seq_lens: Any, mask: Any = None, scale: float | None = None,
    causal: bool = False, pre_cache_length: int = 0,
) -> Tensor:  # fmt: skip
    """Return the attention of [batch, heads, length, features] within lengths [batch, 1], zeros behind them."""
    rows, columns = arange(query.shape[2]), arange(key.shape[2])
    inside = rows < reshape(seq_lens, [-1, 1])
    seen = inside.unsqueeze(2) & (columns < reshape(kv_seq_lens, [-1, 1])).unsqueeze(1)
    seen = seen & (rows.unsqueeze(1) + pre_cache_length >= columns) if causal else seen
    k, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    added = F.relu(1.0 - seen.astype(query.dtype)) * -1e30
    out, _ = attend(query, k, v, added.unsqueeze(1) if mask is None else added.unsqueeze(1) + mask, 0.0, scale)
    return out * inside.astype(out.dtype).unsqueeze(1).unsqueeze(3)


def fused_rotary_position_embedding(
    q: Any, k: Any = None, v: Any = None, sin: Any = None, cos: Any = None, position_ids: Any = None,
    use_neox_rotary_style: bool = True, time_major: bool = False, rotary_emb_base: float = 10000.0,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return [batch, length, heads, features] tensors turned by angles that grow with their place.

    Neighbours are a pair with `use_neox_rotary_style`, else the halves of the features are. `sin` and `cos` are
    [1, length, 1, features], or made from `rotary_emb_base`; `position_ids` [batch, length] says their rows.
    """
    length, size = (q.shape[0] if time_major else q.shape[1]), q.shape[-1]
    if sin is None or cos is None:
        rate = rotary_emb_base ** (arange(0, size, 2, dtype="float32") / -float(size))
        angles = arange(length, dtype="float32").unsqueeze(1) * rate
        angles = stack([angles, angles], -1) if use_neox_rotary_style else concat([angles, angles], -1)
        angles = reshape(angles, [1, length, 1, size])
        sin, cos = sine(angles), cosine(angles)
    sin, cos = (reshape(t, [1, -1, 1, size]).astype(q.dtype) for t in (sin, cos))
    if position_ids is not None:
        sin, cos = (t[0, :, 0][position_ids].unsqueeze(2) for t in (sin, cos))
    if time_major:
        sin, cos = (transpose(t, [1, 0, 2, 3]) for t in (sin, cos))

    def turned(x: Any) -> Any:
        if x is None:
            return None
        if use_neox_rotary_style:
            pairs = reshape(x, [*x.shape[:-1], size // 2, 2])
            other = reshape(stack([-pairs[..., 1], pairs[..., 0]], -1), x.shape)
        else:
            first, second = chunk(x, 2, -1)
            other = concat([-second, first], -1)
        return x * cos + other * sin

    return turned(q), turned(k), turned(v)


def memory_efficient_attention(
    query: Any, key: Any, value: Any, attn_bias: Any = None, p: float = 0.0, scale: float | None = None,
    training: bool = True,
) -> Tensor:  # fmt: skip
    """Return the attention of [batch, length, heads, features] tensors; `attn_bias` is added to scores, or a mask."""
    causal = isinstance(attn_bias, LowerTriangularMask)
    return F.scaled_dot_product_attention(
        query, key, value, None if causal else attn_bias, p, causal, training, scale=scale
    )


class LowerTriangularMask:
    """A mask for `memory_efficient_attention`: a query sees keys up to its own place."""


def _activated(x: Tensor, kind: str | None) -> Tensor:
    if kind in (None, "none", ""):
        return x
    if kind not in ("gelu", "relu", "silu", "sigmoid", "tanh", "swish"):
        raise ValueError(f"a fused activation is gelu, relu, silu, sigmoid, tanh or swish, not {kind!r}")
    return getattr(F, str(kind))(x)


cudnn_flash_attention = flash_attention
__getattr__ = missing_in(__name__, "dy2st.nn.functional")
