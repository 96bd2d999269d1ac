"""`paddle.incubate.nn`: layers that one kernel computes elsewhere; names of Paddle's `nn` are found here too."""

from __future__ import annotations

from typing import Any

from dy2st.incubate.nn import functional
from dy2st.missing import missing_in
from dy2st.nn.initializer import Constant
from dy2st.nn.layer import Layer
from dy2st.nn.layers.linear import Linear
from dy2st.runtime.eager.tensor import Tensor


class FusedDropoutAdd(Layer):
    """dropout(x) + y."""

    def __init__(self, p: float = 0.5, mode: str = "upscale_in_train", name: str | None = None):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x: Any, y: Any) -> Tensor:
        return functional.fused_dropout_add(x, y, self.p, self.training, self.mode)


class FusedLinear(Linear):
    """x @ weight + bias; with `transpose_weight` the weight is [out_features, in_features]."""

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
        transpose_weight: bool = False, name: str | None = None,
    ):  # fmt: skip
        pair = (out_features, in_features) if transpose_weight else (in_features, out_features)
        super().__init__(*pair, weight_attr, False, name)
        self.transpose_weight = transpose_weight
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return functional.fused_linear(input, self.weight, self.bias, self.transpose_weight)


class FusedBiasDropoutResidualLayerNorm(Layer):
    """layer_norm(residual + dropout(x + bias))."""

    def __init__(
        self, embed_dim: int, dropout_rate: float = 0.5, weight_attr: Any = None, bias_attr: Any = None,
        epsilon: float = 1e-5, name: str | None = None,
    ):  # fmt: skip
        super().__init__()
        self._dropout_rate, self._epsilon = dropout_rate, epsilon
        self.linear_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)
        self.ln_scale = self.create_parameter([embed_dim], weight_attr, default_initializer=Constant(1.0))
        self.ln_bias = self.create_parameter([embed_dim], bias_attr, is_bias=True)

    def forward(self, x: Any, residual: Any) -> Tensor:
        weights = self.linear_bias, self.ln_scale, self.ln_bias
        return functional.fused_bias_dropout_residual_layer_norm(
            x, residual, *weights, self._dropout_rate, self._epsilon, self.training
        )


class FusedMultiHeadAttention(Layer):
    """Self-attention with its residual and layer norm; `qkv_weight` is [3, heads, features of a head, features]."""

    def __init__(
        self, embed_dim: int, num_heads: int, dropout_rate: float = 0.5, attn_dropout_rate: float = 0.5,
        kdim: int | None = None, vdim: int | None = None, normalize_before: bool = False, need_weights: bool = False,
        qkv_weight_attr: Any = None, qkv_bias_attr: Any = None, linear_weight_attr: Any = None,
        linear_bias_attr: Any = None, pre_ln_scale_attr: Any = None, pre_ln_bias_attr: Any = None,
        ln_scale_attr: Any = None, ln_bias_attr: Any = None, epsilon: float = 1e-5, nranks: int = 1,
        ring_id: int = -1, transpose_qkv_wb: bool = False, name: str | None = None,
    ):  # fmt: skip
        super().__init__()
        if need_weights:
            raise ValueError("FusedMultiHeadAttention: need_weights must be False")
        self.num_heads, self.normalize_before, self.transpose_qkv_wb = num_heads, normalize_before, transpose_qkv_wb
        self._rates, self._epsilon = (dropout_rate, attn_dropout_rate), epsilon
        size, ones = embed_dim // num_heads, Constant(1.0)
        shape = [embed_dim, 3 * embed_dim] if transpose_qkv_wb else [3, num_heads, size, embed_dim]
        self.qkv_weight = self.create_parameter(shape, qkv_weight_attr)
        bias = [3 * embed_dim] if transpose_qkv_wb else [3, num_heads, size]
        self.qkv_bias = self.create_parameter(bias, qkv_bias_attr, is_bias=True)
        self.linear_weight = self.create_parameter([embed_dim, embed_dim], linear_weight_attr)
        self.linear_bias = self.create_parameter([embed_dim], linear_bias_attr, is_bias=True)
        scale, shift = ("pre_ln_scale", "pre_ln_bias") if normalize_before else ("ln_scale", "ln_bias")
        attrs = (pre_ln_scale_attr, pre_ln_bias_attr) if normalize_before else (ln_scale_attr, ln_bias_attr)
        self.pre_ln_scale = self.pre_ln_bias = self.ln_scale = self.ln_bias = None
        setattr(self, scale, self.create_parameter([embed_dim], attrs[0], default_initializer=ones))
        setattr(self, shift, self.create_parameter([embed_dim], attrs[1], is_bias=True))

    def forward(self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None, cache: Any = None) -> Any:
        return functional.fused_multi_head_attention(
            query, self.qkv_weight, self.linear_weight, self.normalize_before, self.pre_ln_scale, self.pre_ln_bias,
            self.ln_scale, self.ln_bias, self._epsilon, self.qkv_bias, self.linear_bias, cache, attn_mask, *self._rates,
            self._epsilon, self.training, num_heads=self.num_heads, transpose_qkv_wb=self.transpose_qkv_wb,
        )  # fmt: skip


class FusedFeedForward(Layer):
    """Two linear layers with their residual and layer norm."""

    def __init__(
        self, d_model: int, dim_feedforward: int, dropout_rate: float = 0.1, epsilon: float = 1e-5,
        activation: str = "relu", act_dropout_rate: float | None = None, normalize_before: bool = False,
        linear1_weight_attr: Any = None, linear1_bias_attr: Any = None, linear2_weight_attr: Any = None,
        linear2_bias_attr: Any = None, ln1_scale_attr: Any = None, ln1_bias_attr: Any = None,
        ln2_scale_attr: Any = None, ln2_bias_attr: Any = None, nranks: int = 1, ring_id: int = -1,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__()
        self._how = activation, epsilon, epsilon, normalize_before
        self._rates = dropout_rate if act_dropout_rate is None else act_dropout_rate, dropout_rate
        self._linear1_weight = self.create_parameter([d_model, dim_feedforward], linear1_weight_attr)
        self._linear1_bias = self.create_parameter([dim_feedforward], linear1_bias_attr, is_bias=True)
        self._linear2_weight = self.create_parameter([dim_feedforward, d_model], linear2_weight_attr)
        self._linear2_bias = self.create_parameter([d_model], linear2_bias_attr, is_bias=True)
        scale, shift = (ln1_scale_attr, ln1_bias_attr) if normalize_before else (ln2_scale_attr, ln2_bias_attr)
        weight = self.create_parameter([d_model], scale, default_initializer=Constant(1.0))
        bias = self.create_parameter([d_model], shift, is_bias=True)
        self._ln1_scale, self._ln1_bias = (weight, bias) if normalize_before else (None, None)
        self._ln2_scale, self._ln2_bias = (None, None) if normalize_before else (weight, bias)

    def forward(self, src: Any, cache: Any = None) -> Tensor:
        return functional.fused_feedforward(
            src, self._linear1_weight, self._linear2_weight, self._linear1_bias, self._linear2_bias, self._ln1_scale,
            self._ln1_bias, self._ln2_scale, self._ln2_bias, *self._rates, *self._how, self.training,
        )  # fmt: skip


class FusedTransformerEncoderLayer(Layer):
    """`FusedMultiHeadAttention` and `FusedFeedForward`: a layer of `nn.TransformerEncoder`."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout_rate: float = 0.1, activation: str = "relu",
        attn_dropout_rate: float | None = None, act_dropout_rate: float | None = None, normalize_before: bool = False,
        weight_attr: Any = None, bias_attr: Any = None,
    ):  # fmt: skip
        super().__init__()
        rate = dropout_rate if attn_dropout_rate is None else attn_dropout_rate
        self.fused_attn = FusedMultiHeadAttention(d_model, nhead, dropout_rate, rate, normalize_before=normalize_before)
        self.ffn = FusedFeedForward(
            d_model, dim_feedforward, dropout_rate, activation=activation, act_dropout_rate=act_dropout_rate,
            normalize_before=normalize_before,
        )  # fmt: skip

    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any:
        made = self.fused_attn(src, attn_mask=src_mask, cache=cache)
        return self.ffn(made) if cache is None else (self.ffn(made[0]), made[1])


__getattr__ = missing_in(__name__, "dy2st.nn")
