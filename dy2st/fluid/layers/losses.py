"""Losses and the softmax with 1.x's arguments."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math import math, reduction
from dy2st.nn.functional import classification, loss, softmax_family
from dy2st.nn.functional.lookup import one_hot as modern_one_hot
from dy2st.runtime.eager.tensor import Tensor


def softmax(input: Any, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Tensor:
    """Return exp(x) over its sum along an axis.

    >>> import numpy as np, dy2st.fluid as fluid
    >>> fluid.layers.softmax(np.zeros([1, 2], "float32"), axis=1).tolist()
    [[0.5, 0.5]]
    """
    return softmax_family.softmax(input, axis)


def cross_entropy(input: Any, label: Any, soft_label: bool = False, ignore_index: int = -100) -> Tensor:
    """Return -log of the probability of each label, with a last axis of 1; `input` are probabilities, not scores."""
    input = floating(input, "cross_entropy")
    return classification.cross_entropy(
        input, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label, use_softmax=False
    )


def softmax_with_cross_entropy(
    logits: Any, label: Any, soft_label: bool = False, ignore_index: int = -100, numeric_stable_mode: bool = True,
    return_softmax: bool = False, axis: int = -1,
) -> Any:  # fmt: skip
    """Return the cross entropy of the softmax of scores, with an axis of 1; and the softmax with `return_softmax`."""
    return classification.softmax_with_cross_entropy(
        logits, label, soft_label, ignore_index, numeric_stable_mode, return_softmax, axis
    )


def sigmoid_cross_entropy_with_logits(
    x: Any, label: Any, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Tensor:
    """Return the cross entropy of sigmoid(x), 0 where the label is `ignore_index`; over their number if `normalize`."""
    x, label = floating(x, "sigmoid_cross_entropy_with_logits"), tensor(label, "sigmoid_cross_entropy_with_logits")
    counted = cast_to(label != ignore_index, x.dtype)
    out = loss.binary_cross_entropy_with_logits(x, cast_to(label, x.dtype) * counted, reduction="none") * counted
    return out / math.maximum(reduction.sum(counted), 1.0) if normalize else out


def mse_loss(input: Any, label: Any) -> Tensor:
    """Return the mean of (input - label)^2."""
    return loss.mse_loss(input, label)


def smooth_l1(x: Any, y: Any, inside_weight: Any = None, outside_weight: Any = None, sigma: float = 1.0) -> Tensor:
    """Return for each row the sum of 0.5 (sigma d)^2 where |d| < 1 / sigma^2, else |d| - 0.5 / sigma^2; d = x - y."""
    x, y = floating(x, "smooth_l1"), floating(y, "smooth_l1")
    d = math.abs((x - y) * inside_weight if inside_weight is not None else x - y)
    edge = 1.0 / float(sigma) ** 2
    near = math.minimum(d, edge)
    out = near * near * (0.5 / edge) + (d - near)
    if outside_weight is not None:
        out = out * outside_weight
    return out.reshape([out.shape[0], -1]).sum(1, keepdim=True)


def one_hot(input: Any, depth: int, allow_out_of_range: bool = False) -> Tensor:
    """Return vectors of `depth` elements for ids [..., 1]: the last axis becomes the vector."""
    input = tensor(input, "one_hot")
    if input.ndim < 2 or input.shape[-1] != 1:
        raise ValueError(f"one_hot: the ids need a last axis of 1, not the shape {input.shape}; or use fluid.one_hot")
    return modern_one_hot(input.squeeze(-1), depth)


def l2_normalize(x: Any, axis: int, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """Return x over the square root of its sum of squares along an axis, which is at least epsilon."""
    x = floating(x, "l2_normalize")
    return x / math.sqrt(math.maximum(reduction.sum(x * x, axis, keepdim=True), epsilon))
