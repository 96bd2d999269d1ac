"""The last step of every loss: its elements, their mean or their sum."""

from __future__ import annotations

from typing import Any

from dy2st.runtime.eager.tensor import Tensor


def check_reduction(reduction: str, name: str) -> None:
    """Raise ValueError unless the reduction is "mean", "sum" or "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


def reduce_loss(loss: Tensor, reduction: str, name: str) -> Tensor:
    """Return the mean, the sum, or the loss as it is."""
    check_reduction(reduction, name)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def weighted(loss: Tensor, weight: Any) -> Tensor:
    """Return loss * weight, the loss itself where there is no weight."""
    return loss if weight is None else loss * weight
