"""`paddle.static.auc`: how well scores tell positives from negatives, over all runs so far."""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.assigning import set_value
from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.reduction import cumsum
from dy2st.functions.shape.creation import full_like, ones_like, zeros, zeros_like
from dy2st.functions.shape.gather_scatter import index_add
from dy2st.functions.shape.manipulation import flip, reshape
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.gradients import recorder_now


def auc(
    input: Any, label: Any, curve: str = "ROC", num_thresholds: int = 4095, topk: int = 1, slide_steps: int = 1,
    ins_tag_weight: Any = None,
) -> tuple[Tensor, Tensor, list[Tensor]]:  # fmt: skip
    """Return the area under the ROC curve of all runs so far, that of this run, and the counts behind them.

    Parameters
    ----------
    input
        Probabilities of two classes, [batch, 2].
    label
        0 or 1, [batch, 1].
    num_thresholds
        Into how many parts scores are sorted.
    ins_tag_weight
        1 for samples that count, 0 for others, [batch, 1].

    The counts are four [1, num_thresholds + 1]: positives and negatives of this run, and of all.
    """
    if curve != "ROC" or topk != 1 or slide_steps != 1:
        raise ValueError(f"auc: curve is 'ROC', topk and slide_steps are 1, not {curve!r}, {topk} and {slide_steps}")
    recorder = recorder_now("paddle.static.auc")
    scores = tensor(input, "auc")[:, -1]
    truth = reshape(tensor(label, "auc"), [-1]) > 0
    counted = ones_like(truth) if ins_tag_weight is None else reshape(tensor(ins_tag_weight, "auc"), [-1]) > 0
    place = cast_to(scores * num_thresholds, dtypes.int64).clip(0, num_thresholds)
    name = unique_name.generate("auc")
    batch, totals = [], []
    for kind, chosen in (("pos", truth & counted), ("neg", ~truth & counted)):
        none = zeros([num_thresholds + 1], "int64")
        now = index_add(none, place, 0, cast_to(chosen, dtypes.int64))
        state = recorder.create_state(f"{name}.stat_{kind}", [1, num_thresholds + 1], dtypes.int64, 0)
        total = state + reshape(now, [1, -1])
        set_value(state, total)
        batch.append(reshape(now, [1, -1]))
        totals.append(total)
    return _area(*totals), _area(*batch), [*batch, *totals]


def _area(positives: Tensor, negatives: Tensor) -> Tensor:
    """Return the area: pairs of a positive above a negative, halves for equal parts, of all pairs."""
    pos, neg = (flip(cast_to(reshape(t, [-1]), dtypes.float64), 0) for t in (positives, negatives))
    above = cumsum(pos, 0) - pos
    pairs = pos.sum() * neg.sum()
    area = (neg * (above + pos * 0.5)).sum()
    return where(pairs > 0.0, area / where(pairs > 0.0, pairs, full_like(pairs, 1.0)), zeros_like(pairs))
