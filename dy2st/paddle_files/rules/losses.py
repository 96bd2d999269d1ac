"""Losses, element by element or row by row."""

from __future__ import annotations

from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.paddle_files.runner import Node, operator


@operator("cross_entropy_with_softmax")
def _cross_entropy_with_softmax(node: Node, logits: Any, label: Any) -> Any:
    if not node.get("use_softmax", default=True):
        raise node.fail("a cross entropy of probabilities")
    soft, ignored, axis = (
        bool(node.get("soft_label")),
        node.get("ignore_index", default=-100),
        node.get("axis", default=-1),
    )
    loss, softmax = F.softmax_with_cross_entropy(logits, label, soft, ignored, return_softmax=True, axis=axis)
    return softmax, loss


@operator("sigmoid_cross_entropy_with_logits")
def _sigmoid_cross_entropy(node: Node, x: Any, label: Any, weight: Any = None) -> Any:
    if weight is not None or node.get("normalize"):
        raise node.fail("a weight of positive examples, or a normalized loss")
    loss = F.binary_cross_entropy_with_logits(x, label, reduction="none")
    return T.where(label == node.get("ignore_index", default=-100), T.zeros_like(loss), loss)


@operator("bce_loss")
def _bce_loss(node: Node, x: Any, label: Any) -> Any:
    return F.binary_cross_entropy(x, label, reduction="none")


@operator("log_loss")
def _log_loss(node: Node, x: Any, label: Any) -> Any:
    return F.log_loss(x, label, node.get("epsilon", default=1e-4))


@operator("huber_loss")
def _huber_loss(node: Node, x: Any, label: Any) -> Any:
    """Return the loss, and the residual that Paddle keeps for its gradient."""
    delta, off = node.get("delta", default=1.0), label - x
    size = T.abs(off)
    return T.where(size <= delta, 0.5 * off * off, delta * (size - 0.5 * delta)), off


@operator("kldiv_loss")
def _kldiv_loss(node: Node, x: Any, target: Any) -> Any:
    return F.kl_div(x, target, node.get("reduction", default="mean"), bool(node.get("log_target")))


@operator("label_smooth")
def _label_smooth(node: Node, label: Any, prior: Any = None) -> Any:
    return F.label_smooth(label, prior, node.get("epsilon", default=0.1))
