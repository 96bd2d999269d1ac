"""Loss layers with weights, for many classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.reduction import argmax
from dy2st.functions.shape.concat_split import concat
from dy2st.nn.functional import many_classes as F
from dy2st.nn.functional.affine import linear
from dy2st.nn.functional.softmax_family import log_softmax
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class HSigmoidLoss(Layer):
    """`functional.hsigmoid_loss` with a weight and a bias for each inner node of the tree."""

    def __init__(
        self, feature_size: int, num_classes: int, weight_attr: Any = None, bias_attr: Any = None,
        is_custom: bool = False, is_sparse: bool = False, name: str | None = None,
    ):  # fmt: skip
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss: a tree needs two classes, not {num_classes}")
        self._num_classes, self._is_custom = num_classes, is_custom
        nodes = num_classes if is_custom else num_classes - 1
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.weight = self.create_parameter([nodes, feature_size], weight_attr)
        self.bias = self.create_parameter([nodes, 1], bias_attr, is_bias=True)

    def forward(self, input: Any, label: Any, path_table: Any = None, path_code: Any = None) -> Tensor:
        return F.hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code)


class AdaptiveLogSoftmaxWithLoss(Layer):
    """`functional.adaptive_log_softmax_with_loss` with its weights.

    Cluster i has in_features / div_value^(i + 1) features.

    >>> import dy2st as paddle
    >>> loss = paddle.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
    >>> out, mean = loss(paddle.ones([2, 8]), paddle.to_tensor([3, 17]))
    >>> out.shape, loss.log_prob(paddle.ones([2, 8])).shape
    ([2], [2, 20])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], weight_attr: Any = None, bias_attr: Any = None,
        div_value: float = 4.0, head_bias: bool = False, name: str | None = None,
    ):  # fmt: skip
        super().__init__()
        edges = [int(c) for c in cutoffs]
        if edges != sorted(set(edges)) or not edges or edges[0] <= 0 or edges[-1] > n_classes - 1:
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: cutoffs ascend between 0 and {n_classes - 1}, not {edges}")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*edges, n_classes]
        self.div_value, self.is_head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = edges[0], len(edges)
        self.head_size = self.shortlist_size + self.n_clusters
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.head_weight = self.create_parameter([in_features, self.head_size], weight_attr)
        self.head_bias = self.create_parameter([self.head_size], bias_attr, is_bias=True) if head_bias else None
        self.tail_weights = []
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            shapes = [in_features, hidden], [hidden, self.cutoffs[i + 1] - self.cutoffs[i]]
            pair = [self.create_parameter(shape, weight_attr) for shape in shapes]
            self.tail_weights.append(pair)
            for part, weight in enumerate(pair):
                self.add_parameter(f"tail_weights_{i}_{part}", weight)

    def forward(self, input: Any, label: Any) -> tuple[Tensor, Tensor]:
        return F.adaptive_log_softmax_with_loss(
            input, label, self.head_weight, self.tail_weights, self.cutoffs, self.head_bias
        )

    def log_prob(self, input: Any) -> Tensor:
        """Return the logarithms of the probabilities of all classes, [batch, n_classes]."""
        head = log_softmax(linear(input, self.head_weight, self.head_bias))
        short = self.shortlist_size
        tails = [
            log_softmax(matmul(matmul(input, first), second)) + head[:, short + i : short + i + 1]
            for i, (first, second) in enumerate(self.tail_weights)
        ]
        return concat([head[:, :short], *tails], 1)

    def predict(self, input: Any) -> Tensor:
        """Return the likeliest class of each row."""
        return argmax(self.log_prob(input), 1)
