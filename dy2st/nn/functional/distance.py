"""Distances and similarities, and the losses built on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.functions.core.operands import cast_to, floating, op, tensor, together
from dy2st.functions.math import math
from dy2st.functions.shape.creation import arange
from dy2st.nn.functional.classification import softmax_with_cross_entropy
from dy2st.nn.functional.loss import binary_cross_entropy_with_logits
from dy2st.nn.functional.piecewise import piecewise
from dy2st.nn.functional.reduce_loss import check_reduction, reduce_loss, weighted
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_ALONG, _TAKE = op("take_along_axis"), op("take")


@composite
def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between x1 and x2 along the axis; the product of lengths is kept above eps.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([[1.0, 0.0]])
    >>> paddle.nn.functional.cosine_similarity(x, -x).tolist()
    [-1.0]
    """
    x1, x2 = together((floating(x1, "cosine_similarity"), floating(x2, "cosine_similarity")), "cosine_similarity")
    dot = (x1 * x2).sum(axis)
    lengths = math.square(x1).sum(axis) * math.square(x2).sum(axis)
    return dot / math.sqrt(math.maximum(lengths, eps * eps))


@composite
def pairwise_distance(
    x: Any, y: Any, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: str | None = None
) -> Tensor:
    """Return the p-norm of x - y + epsilon along the last axis."""
    x, y = together((floating(x, "pairwise_distance"), floating(y, "pairwise_distance")), "pairwise_distance")
    away = x - y + epsilon
    if p == 2 and not x.dtype.is_complex:
        return math.sqrt(math.square(away).sum(-1, keepdim=keepdim))
    sizes = math.abs(away)
    if p in (float("inf"), float("-inf")):
        return sizes.max(-1, keepdim=keepdim) if p > 0 else sizes.min(-1, keepdim=keepdim)
    if p == 0:
        return cast_to(sizes != 0, sizes.dtype).sum(-1, keepdim=keepdim)
    return (sizes ** float(p)).sum(-1, keepdim=keepdim) ** (1.0 / float(p))


@composite
def cosine_embedding_loss(
    input1: Any, input2: Any, label: Any, margin: float = 0, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """Return 1 - cosine where the label is 1, max(0, cosine - margin) where it is -1."""
    check_reduction(reduction, "cosine_embedding_loss")
    if not -1 <= margin <= 1:
        raise ValueError(f"cosine_embedding_loss: margin must be between -1 and 1, not {margin}")
    cosine = cosine_similarity(input1, input2, axis=-1)
    loss = piecewise(label == 1, 1.0 - cosine, math.maximum(cosine - margin, 0.0))
    return reduce_loss(loss, reduction, "cosine_embedding_loss")


@composite
def hinge_embedding_loss(
    input: Any, label: Any, margin: float = 1.0, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """Return the input where the label is 1, max(0, margin - input) where it is -1."""
    check_reduction(reduction, "hinge_embedding_loss")
    input = floating(input, "hinge_embedding_loss")
    loss = piecewise(label == 1.0, input, 0.0) + piecewise(label == -1.0, math.maximum(margin - input, 0.0), 0.0)
    return reduce_loss(loss, reduction, "hinge_embedding_loss")


@composite
def margin_ranking_loss(
    input: Any, other: Any, label: Any, margin: float = 0.0, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """Return max(0, -label * (input - other) + margin)."""
    check_reduction(reduction, "margin_ranking_loss")
    return reduce_loss(math.maximum((other - input) * label + margin, 0.0), reduction, "margin_ranking_loss")


@composite
def triplet_margin_loss(
    input: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, epsilon: float = 1e-6,
    swap: bool = False, reduction: str = "mean", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return max(0, d(input, positive) - d(input, negative) + margin) with the p-norm distance."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, epsilon)

    return triplet_margin_with_distance_loss(input, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    input: Any, positive: Any, negative: Any, distance_function: Callable[[Any, Any], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the triplet loss of any distance; with `swap` the negative is compared with the nearer of the two."""
    check_reduction(reduction, "triplet_margin_with_distance_loss")
    if margin < 0:
        raise ValueError(f"triplet_margin_with_distance_loss: margin must not be negative, not {margin}")
    distance = distance_function or pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = math.minimum(far, distance(positive, negative))
    return reduce_loss(math.maximum(near - far + margin, 0.0), reduction, "triplet_margin_with_distance_loss")


@composite
def npair_loss(anchor: Any, positive: Any, labels: Any, l2_reg: float = 0.002) -> Tensor:
    """Return the N-pair loss of [batch, features] pairs with labels [batch] (Sohn, 2016)."""
    same = cast_to(labels.reshape([-1, 1]) == labels.reshape([1, -1]), anchor.dtype)
    wanted = same / same.sum(1, keepdim=True)
    penalty = (math.square(anchor).sum(1).mean() + math.square(positive).sum(1).mean()) * (0.25 * l2_reg)
    scores = anchor.matmul(positive.transpose([1, 0]))
    return penalty + softmax_with_cross_entropy(scores, wanted, soft_label=True).mean()


@composite
def multi_label_soft_margin_loss(
    input: Any, label: Any, weight: Any = None, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """Return the mean over classes of the binary cross entropy of logits."""
    check_reduction(reduction, "multi_label_soft_margin_loss")
    loss = weighted(binary_cross_entropy_with_logits(input, label, reduction="none"), weight)
    return reduce_loss(loss.mean(-1), reduction, "multi_label_soft_margin_loss")


@composite
def multi_margin_loss(
    input: Any, label: Any, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean over the other classes of max(0, margin - score of the label + score)^p."""
    check_reduction(reduction, "multi_margin_loss")
    input, label = floating(input, "multi_margin_loss"), tensor(label, "multi_margin_loss").reshape([-1, 1])
    short = math.maximum(margin - apply(_ALONG, input, label, axis=1) + input, 0.0)
    if weight is not None:
        short = short * apply(_TAKE, weight, label, axis=0)
    powers = short ** float(p)
    own = margin**p if weight is None else (apply(_TAKE, weight, label.squeeze(1), axis=0) * margin) ** float(p)
    return reduce_loss((powers.sum(1) - own) / input.shape[1], reduction, "multi_margin_loss")


@composite
def multi_label_margin_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Tensor:
    """Return the mean of max(0, 1 - (score of a label - score of another class)); labels end at the first -1."""
    check_reduction(reduction, "multi_label_margin_loss")
    input, label = floating(input, "multi_label_margin_loss"), tensor(label, "multi_label_margin_loss")
    listed = cast_to(label >= 0, input.dtype).cumprod(1)
    known = math.maximum(label, 0)
    scores = apply(_ALONG, input, known, axis=1)
    classes = input.shape[1]
    from_label = cast_to(
        known.unsqueeze(2) == arange(classes, dtype="int64").reshape([1, 1, -1]), input.dtype
    ) * listed.unsqueeze(2)
    others = 1.0 - from_label.max(1)
    short = math.maximum(1.0 - scores.unsqueeze(2) + input.unsqueeze(1), 0.0)
    loss = (short * listed.unsqueeze(2) * others.unsqueeze(1)).sum([1, 2]) / classes
    return reduce_loss(loss, reduction, "multi_label_margin_loss")
