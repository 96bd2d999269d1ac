"""Connectionist temporal classification: the probability of a text over all its alignments with a sequence.

A. Graves et al., "Connectionist temporal classification" (2006), equations (6) to (8), in logarithms.
"""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.math import maximum
from dy2st.functions.math.reduction import logsumexp
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import arange, full, full_like
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.ir.context import current
from dy2st.nn.functional.piecewise import piecewise
from dy2st.nn.functional.reduce_loss import check_reduction
from dy2st.nn.functional.softmax_family import log_softmax
from dy2st.runtime.eager.tensor import Tensor

_NEVER = -1e30
"""The logarithm of the probability of what cannot be: finite, so that its derivative is 0 and not NaN."""


def ctc_loss(
    log_probs: Any, labels: Any, input_lengths: Any, label_lengths: Any, blank: int = 0, reduction: str = "mean",
    norm_by_times: bool = False, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Return -log(probability of the labels) of sequences, over all alignments with blanks and repetitions.

    Parameters
    ----------
    log_probs
        Scores [time, batch, classes]; their softmax is taken here.
    labels
        Class numbers [batch, longest label].
    input_lengths, label_lengths
        How many steps and labels of each sequence count: [batch].
    reduction
        "mean" divides each loss by the length of its label first.
    norm_by_times
        Divide the gradient of each sequence, not its loss, by the number of its steps.
    zero_infinity
        Give 0 in place of infinity where a label is too long for its sequence.

    >>> import dy2st as paddle
    >>> scores, one = paddle.zeros([2, 1, 2]), paddle.to_tensor([1])
    >>> loss = paddle.nn.functional.ctc_loss(scores, one.reshape([1, 1]), paddle.to_tensor([2]), one)
    >>> round(loss.item(), 4)
    0.2877
    """
    check_reduction(reduction, "ctc_loss")
    logs = log_softmax(floating(log_probs, "ctc_loss"))
    labels = cast_to(tensor(labels, "ctc_loss"), dtypes.int64)
    steps, sizes = (cast_to(tensor(n, "ctc_loss"), dtypes.int64) for n in (input_lengths, label_lengths))
    if logs.ndim != 3 or labels.ndim != 2:
        raise ValueError(f"ctc_loss needs scores [time, batch, classes] and labels [batch, length], not {logs.shape} "
                         f"and {labels.shape}")  # fmt: skip
    loss = -_log_probability(logs, labels, steps, sizes, blank)
    impossible = loss > -0.5 * _NEVER
    loss = piecewise(impossible, 0.0 if zero_infinity else float("inf"), loss)
    if norm_by_times:
        slower = loss / cast_to(steps, loss.dtype)
        loss = loss.detach() + slower - slower.detach()
    if reduction == "mean":
        return (loss / cast_to(sizes, loss.dtype)).mean()
    return loss.sum() if reduction == "sum" else loss


def _log_probability(logs: Tensor, labels: Tensor, steps: Tensor, sizes: Tensor, blank: int) -> Tensor:
    batch, longest = labels.shape
    blanks = full_like(labels, blank)
    between = reshape(stack([blanks, labels], 2), [batch, 2 * longest])
    end = full([batch, 1], blank, labels.dtype)
    path = concat([between, end], 1)  # a blank before, between and after the labels
    never = full_like(cast_to(path, logs.dtype), _NEVER)
    before = concat([end, end, path], 1)[:, :-2]
    may_skip = (path != blank) & (path != before)
    place = arange(2 * longest + 1)
    start = piecewise(place < 2, take_along_axis(logs[0], path, 1), never)
    trace = current().trace
    run = walk if trace is None else trace.convert(walk)
    scores = run(logs, path, start, never, may_skip, steps)
    ends = stack([2 * sizes, maximum(2 * sizes - 1, 0)], 1)
    last = take_along_axis(scores, ends, 1)
    kept = (arange(2) == 0) | (sizes.unsqueeze(1) > 0)  # an empty label ends in one place
    return logsumexp(piecewise(kept, last, _NEVER), 1)


def walk(logs: Tensor, path: Tensor, scores: Tensor, never: Tensor, may_skip: Tensor, steps: Tensor) -> Tensor:
    """Return the scores of all beginnings of the path after the last step; under a trace this source is converted."""
    for t in range(1, logs.shape[0]):
        step = concat([never[:, :1], scores[:, :-1]], 1)
        skip = piecewise(may_skip, concat([never[:, :1], step[:, :-1]], 1), never)
        found = logsumexp(stack([scores, step, skip], 0), 0) + take_along_axis(logs[t], path, 1)
        scores = piecewise(steps.unsqueeze(1) > t, found, scores)
    return scores


walk.__dy2st_convert__ = True  # type: ignore[attr-defined]
