"""Losses that compare two tensors element by element."""

from __future__ import annotations

import math as _math
from typing import Any

from dy2st.functions.core.operands import floating, together
from dy2st.functions.math import math
from dy2st.missing import missing_in
from dy2st.nn.functional.activation import log_sigmoid, sigmoid, softplus
from dy2st.nn.functional.lookup import one_hot
from dy2st.nn.functional.piecewise import piecewise
from dy2st.nn.functional.reduce_loss import check_reduction, reduce_loss, weighted
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.tensor import Tensor


@composite
def mse_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Tensor:
    """Return (input - label)^2.

    >>> import dy2st as paddle
    >>> float(paddle.nn.functional.mse_loss(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([1.0, 4.0])))
    2.0
    """
    check_reduction(reduction, "mse_loss")
    return reduce_loss(square_error_cost(input, label), reduction, "mse_loss")


@composite
def square_error_cost(input: Any, label: Any) -> Tensor:
    """Return (input - label)^2, element by element."""
    input, label = _two(input, label, "square_error_cost")
    return math.square(input - label)


@composite
def l1_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Tensor:
    """Return |input - label|."""
    check_reduction(reduction, "l1_loss")
    input, label = _two(input, label, "l1_loss")
    return reduce_loss(math.abs(input - label), reduction, "l1_loss")


@composite
def smooth_l1_loss(
    input: Any,
    label: Any,
    reduction: str = "mean",
    delta: float = 1.0,
    is_huber: bool = True,
    name: str | None = None,
) -> Tensor:
    """Return d^2 / 2 where d = |input - label| <= delta, else delta * (d - delta / 2); over delta if not is_huber."""
    check_reduction(reduction, "smooth_l1_loss")
    if delta <= 0:
        raise ValueError(f"smooth_l1_loss: delta must be positive, not {delta}")
    input, label = _two(input, label, "smooth_l1_loss")
    far = math.abs(input - label)
    loss = piecewise(far <= delta, math.square(far) * 0.5, (far - 0.5 * delta) * delta)
    return reduce_loss(loss if is_huber else loss / delta, reduction, "smooth_l1_loss")


@composite
def binary_cross_entropy(
    input: Any, label: Any, weight: Any = None, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """Return -label * log(input) - (1 - label) * log(1 - input), logarithms kept above -100."""
    check_reduction(reduction, "binary_cross_entropy")
    input, label = _two(input, label, "binary_cross_entropy")
    yes, no = math.maximum(math.log(input), -100.0), math.maximum(math.log1p(-input), -100.0)
    return reduce_loss(weighted(-(label * yes + (1.0 - label) * no), weight), reduction, "binary_cross_entropy")


@composite
def binary_cross_entropy_with_logits(
    logit: Any,
    label: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the binary cross entropy of sigmoid(logit), computed without overflow."""
    check_reduction(reduction, "binary_cross_entropy_with_logits")
    logit, label = _two(logit, label, "binary_cross_entropy_with_logits")
    if pos_weight is None:
        loss = (1.0 - label) * logit - log_sigmoid(logit)
    else:
        loss = (1.0 - label) * logit - ((pos_weight - 1.0) * label + 1.0) * log_sigmoid(logit)
    return reduce_loss(weighted(loss, weight), reduction, "binary_cross_entropy_with_logits")


@composite
def sigmoid_focal_loss(
    logit: Any,
    label: Any,
    normalizer: Any = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: str | None = None,
) -> Tensor:
    """Return alpha_t * (1 - p_t)^gamma * cross entropy (Lin et al., "Focal loss", 2017)."""
    check_reduction(reduction, "sigmoid_focal_loss")
    logit, label = _two(logit, label, "sigmoid_focal_loss")
    p = sigmoid(logit)
    loss = binary_cross_entropy_with_logits(logit, label, reduction="none")
    right = p * label + (1.0 - p) * (1.0 - label)
    loss = loss * (alpha * label + (1.0 - alpha) * (1.0 - label)) * (1.0 - right) ** gamma
    return reduce_loss(loss if normalizer is None else loss / normalizer, reduction, "sigmoid_focal_loss")


@composite
def kl_div(
    input: Any, label: Any, reduction: str = "mean", log_target: bool = False, name: str | None = None
) -> Tensor:
    """Return label * (log(label) - input), for log-probabilities `input`; "batchmean" divides the sum by the batch."""
    if reduction != "batchmean":
        check_reduction(reduction, "kl_div")
    input, label = _two(input, label, "kl_div")
    if log_target:
        loss = math.exp(label) * (label - input)
    else:
        positive = label > 0
        loss = piecewise(positive, label * (math.log(piecewise(positive, label, 1.0)) - input), 0.0)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduce_loss(loss, reduction, "kl_div")


@composite
def log_loss(input: Any, label: Any, epsilon: float = 0.0001, name: str | None = None) -> Tensor:
    """Return -label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon)."""
    input, label = _two(input, label, "log_loss")
    return -label * math.log(input + epsilon) - (1.0 - label) * math.log(1.0 - input + epsilon)


@composite
def soft_margin_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Tensor:
    """Return log(1 + e^(-label * input)) for labels of -1 and 1."""
    check_reduction(reduction, "soft_margin_loss")
    input, label = _two(input, label, "soft_margin_loss")
    return reduce_loss(softplus(-label * input, 1.0, 1e30), reduction, "soft_margin_loss")


@composite
def poisson_nll_loss(
    input: Any,
    label: Any,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """Return e^input - label * input (or input - label * log(input + epsilon)), with Stirling's term where `full`."""
    check_reduction(reduction, "poisson_nll_loss")
    if epsilon <= 0:
        raise ValueError(f"poisson_nll_loss: epsilon must be positive, not {epsilon}")
    input, label = _two(input, label, "poisson_nll_loss")
    loss = math.exp(input) - label * input if log_input else input - label * math.log(input + epsilon)
    if full:
        safe = math.maximum(label, 1.0)
        stirling = safe * math.log(safe) - safe + math.log(safe * (2.0 * _math.pi)) * 0.5
        loss = loss + piecewise(label > 1, stirling, 0.0)
    return reduce_loss(loss, reduction, "poisson_nll_loss")


@composite
def gaussian_nll_loss(
    input: Any,
    label: Any,
    variance: Any,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """Return (log(variance) + (input - label)^2 / variance) / 2; `variance` may lack the last axis or have 1 there."""
    check_reduction(reduction, "gaussian_nll_loss")
    input, label = _two(input, label, "gaussian_nll_loss")
    variance = floating(variance, "gaussian_nll_loss")
    if variance.ndim == input.ndim - 1:
        variance = variance.unsqueeze(-1)
    kept = math.maximum(variance, epsilon)
    kept = (kept - variance).detach() + variance
    loss = (math.log(kept) + math.square(input - label) / kept) * 0.5
    if full:
        loss = loss + 0.5 * _math.log(2.0 * _math.pi)
    return reduce_loss(loss, reduction, "gaussian_nll_loss")


@composite
def dice_loss(input: Any, label: Any, epsilon: float = 1e-5, name: str | None = None) -> Tensor:
    """Return 1 - 2 * |overlap| / (|input| + |label|), the mean over the batch; labels are [batch, ..., 1] numbers."""
    input = floating(input, "dice_loss")
    if label.ndim != input.ndim or (isinstance(label.shape[-1], int) and label.shape[-1] != 1):
        raise ValueError(f"dice_loss: labels of shape {label.shape} need the input's axes and 1 as the last extent")
    hot = one_hot(label.reshape(label.shape[:-1]), input.shape[-1]).astype(input.dtype)
    axes = list(range(1, input.ndim))
    overlap = (input * hot).sum(axes)
    return (1.0 - overlap * 2.0 / (input.sum(axes) + hot.sum(axes) + epsilon)).mean()


def _two(input: Any, label: Any, name: str) -> list[Tensor]:
    return together((floating(input, name), floating(label, name)), name)


__getattr__ = missing_in(__name__, "dy2st.nn.functional")
