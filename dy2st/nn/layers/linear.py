"""Layers that are linear maps of their inputs, and embeddings."""

from __future__ import annotations

from typing import Any

from dy2st.nn.functional.affine import bilinear, linear
from dy2st.nn.functional.lookup import embedding
from dy2st.nn.initializer.assign import Assign
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class Linear(Layer):
    """x @ weight + bias; `weight` is [in_features, out_features].

    >>> import dy2st as paddle
    >>> paddle.nn.Linear(4, 2)(paddle.ones([3, 4])).shape
    [3, 2]
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self.in_features, self.out_features = in_features, out_features
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)
        self.name = name

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._dtype.name}"


class Bilinear(Layer):
    """out[b, k] = x1[b] @ weight[k] @ x2[b] + bias[k]."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._features = (in1_features, in2_features, out_features)
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return "in1_features={}, in2_features={}, out_features={}".format(*self._features)


class Embedding(Layer):
    """Rows of a learnt [num_embeddings, embedding_dim] table; the row `padding_idx` is zeros and is not trained."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, *, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        _freeze: bool = False, dtype: Any = None, weight_attr: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        for what, value in (("num_embeddings", num_embeddings), ("embedding_dim", embedding_dim)):
            if value <= 0:
                raise ValueError(f"Embedding: {what} must be positive, not {value}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is outside of {num_embeddings} rows")
        self._num_embeddings, self._embedding_dim = num_embeddings, embedding_dim
        self._size, self._weight_attr = [num_embeddings, embedding_dim], weight_attr
        self._padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self._max_norm, self._norm_type, self._scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.weight = self.create_parameter(
            [num_embeddings, embedding_dim],
            weight_attr,
            default_initializer=None if _weight is None else Assign(_weight),
        )
        if _freeze:
            self.weight.stop_gradient = True
        if self._padding_idx is not None and hasattr(self.weight.payload, "flags"):
            self.weight.payload[self._padding_idx] = 0

    def forward(self, x: Tensor) -> Tensor:
        return embedding(
            x, self.weight, self._padding_idx, self._max_norm, self._norm_type,
            scale_grad_by_freq=self._scale_grad_by_freq,
        )  # fmt: skip

    def extra_repr(self) -> str:
        more = "" if self._padding_idx is None else f", padding_idx={self._padding_idx}"
        return f"{self._num_embeddings}, {self._embedding_dim}{more}"
