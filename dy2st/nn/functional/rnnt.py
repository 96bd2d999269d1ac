"""Sequence transduction: the probability of a text over all its alignments with a sequence.

A. Graves, "Sequence transduction with recurrent neural networks" (2012), equation (16) in logarithms; J. Yu et al.,
"FastEmit" (2021), for what `fastemit_lambda` does to gradients.
"""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.math import logaddexp
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.creation import zeros_like
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.ir.context import current
from dy2st.nn.functional.reduce_loss import check_reduction
from dy2st.runtime.eager.tensor import Tensor


def rnnt_loss(
    input: Any, label: Any, input_lengths: Any, label_lengths: Any, blank: int = 0, fastemit_lambda: float = 0.001,
    reduction: str = "mean", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return -log(probability of the labels) of sequences, over all alignments.

    Parameters
    ----------
    input
        Logarithms of probabilities [batch, time, 1 + longest label, classes].
    label
        Class numbers [batch, longest label].
    input_lengths, label_lengths
        How many steps and labels of each sequence count: [batch].
    fastemit_lambda
        Gradients of labels count 1 + fastemit_lambda times, so that they are given early.
    reduction
        "mean" divides the sum by the number of sequences.

    >>> import dy2st as paddle
    >>> logs = paddle.full([1, 2, 2, 2], 0.5).log()
    >>> one = paddle.to_tensor([1], "int32")
    >>> loss = paddle.nn.functional.rnnt_loss(logs, one.reshape([1, 1]), paddle.to_tensor([2], "int32"), one)
    >>> round(loss.item(), 4)  # one of three steps is the label, in two orders
    1.3863
    """
    check_reduction(reduction, "rnnt_loss")
    logs = floating(input, "rnnt_loss")
    labels, steps, sizes = (
        cast_to(tensor(n, "rnnt_loss"), dtypes.int64) for n in (label, input_lengths, label_lengths)
    )
    if logs.ndim != 4 or labels.ndim != 2:
        raise ValueError(
            f"rnnt_loss needs [batch, time, labels, classes] and labels [batch, length], not {logs.shape} and "
            f"{labels.shape}"
        )
    silent = logs[:, :, :, blank]
    index = labels.unsqueeze(1).unsqueeze(-1)
    spoken = take_along_axis(logs[:, :, :-1], index, 3)[..., 0]
    spoken = spoken + fastemit_lambda * (spoken - spoken.detach())
    trace = current().trace
    run = lattice if trace is None else trace.convert(lattice)
    rows = run(silent, spoken)
    at_end = take_along_axis(take_along_axis(rows + silent, (steps - 1).reshape([-1, 1, 1]), 1)[:, 0],
                             sizes.unsqueeze(1), 1)  # fmt: skip
    loss = -at_end[:, 0]
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def lattice(silent: Tensor, spoken: Tensor) -> Tensor:
    """Return the scores of all beginnings, [batch, time, 1 + labels]; under a trace this source is converted."""
    rows = []
    row = zeros_like(silent[:, 0])
    for t in range(silent.shape[1]):
        # along the labels: row[u] = logaddexp(from below [u], row[u - 1] + spoken[u - 1])
        start = row + silent[:, t - 1] if t > 0 else row
        cells = [start[:, 0]]
        for u in range(1, silent.shape[2]):
            said = cells[-1] + spoken[:, t, u - 1]
            cells.append(logaddexp(start[:, u], said) if t > 0 else said)
        row = stack(cells, 1)
        rows.append(row)
    return stack(rows, 1)


lattice.__dy2st_convert__ = True  # type: ignore[attr-defined]
