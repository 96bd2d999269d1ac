"""Transformers (Vaswani et al., "Attention is all you need", 2017): encoder, decoder and both together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from dy2st.functions.shape.creation import full
from dy2st.functions.shape.diagonals import triu
from dy2st.nn.composite_layer import composite_layer
from dy2st.nn.functional import activation as activations
from dy2st.nn.layer import Layer
from dy2st.nn.layers.attention import Cache, MultiHeadAttention, StaticCache
from dy2st.nn.layers.containers import LayerList
from dy2st.nn.layers.dropout import Dropout
from dy2st.nn.layers.linear import Linear
from dy2st.nn.layers.norm import LayerNorm
from dy2st.nn.param_attr import ParamAttr
from dy2st.runtime.eager.tensor import Tensor


class _Block(Layer):
    """What encoder and decoder layers share: attention and a feed-forward net, each with a residual and a norm.

    With `normalize_before` the norm stands before the part, else after the residual.
    """

    attentions: int

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, activation: str = "relu",
        attn_dropout: float | None = None, act_dropout: float | None = None, normalize_before: bool = False,
        weight_attr: Any = None, bias_attr: Any = None, layer_norm_eps: float = 1e-5,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._config = {
            "d_model": d_model, "nhead": nhead, "dim_feedforward": dim_feedforward, "dropout": dropout,
            "activation": activation, "attn_dropout": attn_dropout, "act_dropout": act_dropout,
            "normalize_before": normalize_before, "weight_attr": weight_attr, "bias_attr": bias_attr,
            "layer_norm_eps": layer_norm_eps,
        }  # fmt: skip
        self.normalize_before = normalize_before
        self.activation = _activation(activation)
        parts = self.attentions + 1
        weights, biases = _for_parts(weight_attr, parts, "weight_attr"), _for_parts(bias_attr, parts, "bias_attr")
        on_weights = dropout if attn_dropout is None else attn_dropout
        for name, weight, bias in zip(("self_attn", "cross_attn")[: self.attentions], weights, biases, strict=False):
            setattr(self, name, MultiHeadAttention(d_model, nhead, on_weights, weight_attr=weight, bias_attr=bias))
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for part in range(1, parts + 1):
            setattr(self, f"norm{part}", LayerNorm(d_model, layer_norm_eps))
            setattr(self, f"dropout{part}", Dropout(dropout))

    def twin(self) -> Layer:
        """Return a layer of the same kind with parameters of its own."""
        return type(self)(**self._config)

    def _part(self, number: int, x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x + dropout(compute(x)), with the norm before or after."""
        norm, drop = self._sub_layers[f"norm{number}"], self._sub_layers[f"dropout{number}"]
        if self.normalize_before:
            return x + drop(compute(norm(x)))
        return norm(x + drop(compute(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """Self-attention, then linear, activation, linear.

    >>> import dy2st as paddle
    >>> paddle.nn.TransformerEncoderLayer(8, 2, 16)(paddle.ones([3, 5, 8])).shape
    [3, 5, 8]
    """

    attentions = 1

    @composite_layer
    def forward(self, src: Tensor, src_mask: Any = None, cache: Cache | None = None) -> Any:
        kept: list[Any] = []

        def attention(x: Tensor) -> Tensor:
            if cache is None:
                return self.self_attn(x, x, x, src_mask)
            out, after = self.self_attn(x, x, x, src_mask, cache)
            kept.append(after)
            return out

        x = self._part(1, src, attention)
        x = self._part(2, x, self._feed_forward)
        return x if cache is None else (x, kept[0])

    def gen_cache(self, src: Tensor) -> Cache:
        """Return an empty cache for inputs like `src`."""
        return self.self_attn.gen_cache(src)


class TransformerEncoder(Layer):
    """Copies of an encoder layer, one over the other; `norm` is applied last."""

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Layer | None = None):
        super().__init__(dtype=None)
        self.layers = LayerList([encoder_layer, *(encoder_layer.twin() for _ in range(num_layers - 1))])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, src_mask: Any = None, cache: Any = None) -> Any:
        kept: list[Any] = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                src = layer(src, src_mask)
            else:
                src, after = layer(src, src_mask, cache[i])
                kept.append(after)
        if self.norm is not None:
            src = self.norm(src)
        return src if cache is None else (src, kept)

    def gen_cache(self, src: Tensor) -> list[Cache]:
        """Return an empty cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to the encoder's memory, then linear, activation, linear."""

    attentions = 2

    @composite_layer
    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Any = None, memory_mask: Any = None,
        cache: tuple[Cache, StaticCache] | None = None,
    ) -> Any:  # fmt: skip
        kept: list[Any] = []

        def itself(x: Tensor) -> Tensor:
            if cache is None:
                return self.self_attn(x, x, x, tgt_mask)
            out, after = self.self_attn(x, x, x, tgt_mask, cache[0])
            kept.append(after)
            return out

        def across(x: Tensor) -> Tensor:
            if cache is None:
                return self.cross_attn(x, memory, memory, memory_mask)
            out, after = self.cross_attn(x, memory, memory, memory_mask, cache[1])
            kept.append(after)
            return out

        x = self._part(1, tgt, itself)
        x = self._part(2, x, across)
        x = self._part(3, x, self._feed_forward)
        return x if cache is None else (x, tuple(kept))

    def gen_cache(self, memory: Tensor) -> tuple[Cache, StaticCache]:
        """Return an empty cache for the target and the keys and values of the memory."""
        return self.self_attn.gen_cache(memory), self.cross_attn.gen_cache(memory, memory, StaticCache)


class TransformerDecoder(Layer):
    """Copies of a decoder layer, one over the other; `norm` is applied last."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Layer | None = None):
        super().__init__(dtype=None)
        self.layers = LayerList([decoder_layer, *(decoder_layer.twin() for _ in range(num_layers - 1))])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Any = None, memory_mask: Any = None, cache: Any = None
    ) -> Any:
        kept: list[Any] = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                tgt = layer(tgt, memory, tgt_mask, memory_mask)
            else:
                tgt, after = layer(tgt, memory, tgt_mask, memory_mask, cache[i])
                kept.append(after)
        if self.norm is not None:
            tgt = self.norm(tgt)
        return tgt if cache is None else (tgt, kept)

    def gen_cache(self, memory: Tensor, do_zip: bool = False) -> list[Any]:
        """Return a cache for each layer; with `do_zip` those for the target first, those of the memory second."""
        found = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*found, strict=True)) if do_zip else found


class Transformer(Layer):
    """An encoder of the source and a decoder of the target, with `nhead` heads of d_model / nhead features.

    >>> import dy2st as paddle
    >>> model = paddle.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(paddle.ones([3, 5, 8]), paddle.ones([3, 4, 8])).shape
    [3, 4, 8]
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str = "relu",
        attn_dropout: float | None = None, act_dropout: float | None = None, normalize_before: bool = False,
        weight_attr: Any = None, bias_attr: Any = None, custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        how = (dropout, activation, attn_dropout, act_dropout, normalize_before)
        layer = (d_model, nhead, dim_feedforward, *how)
        self.d_model, self.nhead = d_model, nhead
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, weight_attr, bias_attr), num_encoder_layers, LayerNorm(d_model)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, weight_attr, bias_attr), num_decoder_layers, LayerNorm(d_model)
        )

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None
    ) -> Tensor:
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    @staticmethod
    def generate_square_subsequent_mask(length: int) -> Tensor:
        """Return a [length, length] mask that hides what comes later: -inf above the diagonal, 0 elsewhere."""
        return triu(full([length, length], float("-inf")), 1)


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    found = getattr(activations, name, None) if isinstance(name, str) and not name.startswith("_") else None
    if found is None:
        raise ValueError(f"no activation is named {name!r}")
    return found


def _for_parts(attr: Any, parts: int, what: str) -> list[Any]:
    """Return one attribute for each part of a layer; a list has one for each, or 2 (attention, feed-forward)."""
    if not isinstance(attr, (list, tuple)):
        return [attr] * parts
    if len(attr) == 2:
        return [*[attr[0]] * (parts - 1), attr[1]]
    if len(attr) != parts:
        raise ValueError(f"{what} has {len(attr)} attributes, the layer has {parts} parts")
    return list(attr)


def _convert_attention_mask(attn_mask: Any, dtype: Any) -> Any:  # pyright: ignore[reportUnusedFunction] imported
    """Return a mask as what is added to scores: of bools and ints 0 where it lets through, else -1e9."""
    if attn_mask is None or attn_mask.dtype == dtype:
        return attn_mask
    kept = attn_mask.astype(dtype)
    return (kept - 1.0) * 1e9 if attn_mask.dtype.is_bool or attn_mask.dtype.is_integer else kept


def _convert_param_attr_to_list(param_attr: Any, n: int) -> list[Any]:  # pyright: ignore[reportUnusedFunction] imported
    """Return `n` attributes of parameters, those of one with a name told apart by their numbers; False for none."""
    if isinstance(param_attr, (list, tuple)):
        if len(param_attr) != n:
            raise ValueError(f"{len(param_attr)} attributes are given for {n} parts")
        return [ParamAttr._to_attr(attr) for attr in param_attr]
    found = [copy.copy(ParamAttr._to_attr(param_attr)) for _ in range(n)]
    for number, attr in enumerate(found):
        if isinstance(attr, ParamAttr) and attr.name:
            attr.name = f"{attr.name}_{number}"
    return found
