"""`paddle.text`: the best sequence of tags (Viterbi, 1967)."""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import int64
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.reduction import argmax
from dy2st.functions.math.search import one_hot
from dy2st.functions.shape.concat_split import stack
from dy2st.functions.shape.creation import zeros_like
from dy2st.functions.shape.gather_scatter import take_along_axis
from dy2st.missing import missing_in
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor

__getattr__ = missing_in(__name__)


def viterbi_decode(
    potentials: Any, transition_params: Any, lengths: Any, include_bos_eos_tag: bool = True, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the scores of the best sequences of tags, [batch], and these, [batch, longest length], 0 behind the end.

    Parameters
    ----------
    potentials
        [batch, steps, tags].
    transition_params
        [tags, tags]: the score of a tag (row) before another (column).
    lengths
        [batch].
    include_bos_eos_tag
        Whether the last tag but one begins a sequence and the last ends it.

    >>> import dy2st as paddle
    >>> scores, path = viterbi_decode(paddle.to_tensor([[[1.0, 0.0], [0.0, 2.0]]]), paddle.zeros([2, 2]),
    ...                               paddle.to_tensor([2]), False)
    >>> scores.tolist(), path.tolist()
    ([3.0], [[0, 1]])
    """
    scores, moves = floating(potentials, "viterbi_decode"), floating(transition_params, "viterbi_decode")
    lengths = cast_to(tensor(lengths, "viterbi_decode"), int64)
    steps = scores.shape[1]
    ends = moves[:, -1] if include_bos_eos_tag else zeros_like(moves[:, 0])
    best = scores[:, 0] + moves[-2] if include_bos_eos_tag else scores[:, 0]
    best = best + (lengths == 1)[:, None].astype(best.dtype) * ends
    back: list[Tensor] = []
    for t in range(1, steps):
        ways = best[:, :, None] + moves
        back.append(argmax(ways, 1))
        new = ways.max(1) + scores[:, t] + (lengths == t + 1)[:, None].astype(best.dtype) * ends
        best = where((lengths > t)[:, None], new, best)
    tag = argmax(best, -1)
    path = [tag]
    for t in range(steps - 1, 0, -1):  # a sequence that ends before t has its last tag still
        before = take_along_axis(back[t - 1], tag[:, None], 1)[:, 0]
        tag = where(lengths > t, before, tag)
        path.append(tag)
    made = stack(path[::-1], 1)
    inside = (one_hot(lengths, steps + 1).cumsum(1)[:, :steps] == 0.0).astype("int64")
    return best.max(-1), (made * inside)[:, : lengths.max()]


class ViterbiDecoder(Layer):
    """`viterbi_decode` with known scores of neighbours."""

    def __init__(self, transitions: Any, include_bos_eos_tag: bool = True, name: str | None = None):
        super().__init__()
        self.transitions, self.include_bos_eos_tag = transitions, include_bos_eos_tag

    def forward(self, potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag)
