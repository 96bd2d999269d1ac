"""Losses of class scores against class numbers or class probabilities."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, one_axis, op, tensor
from dy2st.functions.math import math
from dy2st.nn.functional.lookup import hot
from dy2st.nn.functional.piecewise import piecewise
from dy2st.nn.functional.reduce_loss import check_reduction, reduce_loss
from dy2st.nn.functional.softmax_family import log_softmax, softmax
from dy2st.runtime.eager.composite import composite
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_CROSS_ENTROPY, _TAKE, _ALONG = op("softmax_cross_entropy"), op("take"), op("take_along_axis")


@composite
def cross_entropy(
    input: Any,
    label: Any,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return -log(probability of the label), the loss of classification.

    `input` has the classes along `axis`: scores, or probabilities where not `use_softmax`. `label` is class numbers,
    without that axis or with an extent of 1 there, or probabilities of the input's shape where `soft_label`. `weight`
    has a factor for each class; the mean is over the sum of those factors, and 0 where that is 0. Labels of
    `ignore_index` have no loss; the mean is over the others where `ignore_index` is not negative, and over all, as
    Paddle has it, where it is. With `label_smoothing` e, labels become (1 - e) * label + e / classes.

    >>> import dy2st as paddle
    >>> loss = paddle.nn.functional.cross_entropy(paddle.zeros([1, 4]), paddle.to_tensor([2]))
    >>> round(float(loss), 4)
    1.3863
    """
    check_reduction(reduction, "cross_entropy")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing must be between 0 and 1, not {label_smoothing}")
    if soft_label and ignore_index >= 0:
        raise ValueError("cross_entropy: ignore_index has no meaning with soft_label=True")
    input = floating(input, "cross_entropy")
    if input.ndim == 0:
        raise ValueError("cross_entropy: the input needs an axis of classes")
    axis = one_axis(axis, input.ndim, "cross_entropy")
    label = tensor(label, "cross_entropy")
    if not soft_label and label.ndim not in (input.ndim, input.ndim - 1):
        raise ValueError(
            f"cross_entropy: labels of shape {label.shape} do not fit an input of shape {input.shape}; "
            "they need its axes, with or without the axis of classes"
        )
    squeeze = not soft_label and label.ndim == input.ndim - 1
    if soft_label:
        loss, factors = _soft(input, cast_to(label, input.dtype), weight, axis, use_softmax, label_smoothing)
    else:
        numbers = label.unsqueeze(axis) if squeeze else label
        numbers = numbers if numbers.dtype.is_integer else cast_to(numbers, dtypes.int64)
        loss, factors = _hard(input, numbers, weight, axis, use_softmax, label_smoothing, ignore_index)
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss.squeeze(axis) if squeeze else loss
    return loss.mean() if factors is None else _weighed(loss, factors)


def _hard(
    input: Tensor, label: Tensor, weight: Any, axis: int, use_softmax: bool, smoothing: float, ignore_index: int
) -> tuple[Tensor, Tensor | None]:
    """Return the loss of each label and what it counts in the mean; None is 1 for each label."""
    counts = label != ignore_index
    present = cast_to(counts, input.dtype)
    known = piecewise(counts, label, 0)
    if smoothing:
        vectors = hot(known.squeeze(axis), input.shape[axis], input.dtype).moveaxis(-1, axis)
        loss, factors = _soft(input, vectors, weight, axis, use_softmax, smoothing)
        if factors is not None:
            return loss * present, factors * present
        loss = loss * present
    elif use_softmax:
        loss = apply(_CROSS_ENTROPY, input, label, axis=axis, ignore_index=int(ignore_index))
    else:
        loss = -math.log(apply(_ALONG, input, known, axis=axis)) * present
    if weight is None:
        return loss, present if ignore_index >= 0 else None
    factors = apply(_TAKE, weight, known, axis=0) * present
    return loss * factors, factors


def _soft(
    input: Tensor, label: Tensor, weight: Any, axis: int, use_softmax: bool, smoothing: float
) -> tuple[Tensor, Tensor | None]:
    if smoothing:
        label = label * (1.0 - smoothing) + smoothing / input.shape[axis]
    logs = log_softmax(input, axis) if use_softmax else math.log(input)
    loss = -(label * logs).sum(axis, keepdim=True)
    if weight is None:
        return loss, None
    shape = [1] * input.ndim
    shape[axis] = -1
    factors = (label * weight.reshape(shape)).sum(axis, keepdim=True)
    return loss * factors, factors


def _weighed(loss: Tensor, factors: Tensor) -> Tensor:
    """Return the mean over the sum of factors; where they sum up to 0, so does the loss."""
    total = factors.sum()
    return loss.sum() / piecewise(total == 0, 1.0, total)


@composite
def softmax_with_cross_entropy(
    logits: Any,
    label: Any,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """Return the loss of each label with the axis of classes kept, and the softmax where asked for."""
    logits = floating(logits, "softmax_with_cross_entropy")
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    if loss.ndim < logits.ndim:
        loss = loss.unsqueeze(axis)
    return (loss, softmax(logits, axis)) if return_softmax else loss


@composite
def nll_loss(
    input: Any,
    label: Any,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """Return -input[label], for log-probabilities [batch, classes, ...] and labels [batch, ...].

    The mean is over the sum of the labels' weights, 0 where that is 0; labels equal to `ignore_index` count nothing.
    """
    check_reduction(reduction, "nll_loss")
    input, label = floating(input, "nll_loss"), tensor(label, "nll_loss")
    if input.ndim < 2 or label.ndim != input.ndim - 1:
        raise ValueError(f"nll_loss: an input of shape {input.shape} and labels of shape {label.shape} do not fit")
    counts = (label != ignore_index).unsqueeze(1)
    known = piecewise(counts, label.unsqueeze(1), 0)
    factors = cast_to(counts, input.dtype)
    if weight is not None:
        factors = factors * apply(_TAKE, weight, known, axis=0)
    loss = -apply(_ALONG, input, known, axis=1) * factors
    if reduction == "none":
        return loss.squeeze(1)
    return loss.sum() if reduction == "sum" else _weighed(loss, factors)


@composite
def label_smooth(label: Any, prior_dist: Tensor | None = None, epsilon: float = 0.1, name: str | None = None) -> Tensor:
    """Return (1 - epsilon) * label + epsilon * prior, with 1 / classes where no prior is given."""
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"label_smooth: epsilon must be between 0 and 1, not {epsilon}")
    label = floating(label, "label_smooth")
    prior: Any = epsilon / label.shape[-1] if prior_dist is None else prior_dist * epsilon
    return label * (1.0 - epsilon) + prior


def margin_cross_entropy(
    logits: Any,
    label: Any,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    group: Any = None,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> Any:
    """Return the cross entropy of cosines in which the label's angle t became cos(m1 * t + m2) - m3 (ArcFace, 2019)."""
    cosines = floating(logits, "margin_cross_entropy")
    label = tensor(label, "margin_cross_entropy")
    numbers = label.squeeze(-1) if label.ndim == cosines.ndim else label
    chosen = hot(numbers, cosines.shape[-1], cosines.dtype)
    moved = math.cos(math.acos(cosines) * margin1 + margin2) - margin3
    scaled = piecewise(chosen > 0, moved, cosines) * scale
    loss = softmax_with_cross_entropy(scaled, numbers.unsqueeze(-1))
    loss = reduce_loss(loss, reduction or "none", "margin_cross_entropy")
    return (loss, softmax(scaled)) if return_softmax else loss
