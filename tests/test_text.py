"""The best sequence of tags, beside all sequences."""

import itertools

import numpy as np
import pytest

import dy2st as paddle
from dy2st.text import ViterbiDecoder, viterbi_decode


@pytest.mark.parametrize("around", [True, False])
def test_no_sequence_has_a_better_score(around):
    rng = np.random.default_rng(6)
    scores, moves = rng.normal(size=[3, 4, 4]).astype("float32"), rng.normal(size=[4, 4]).astype("float32")
    lengths = np.array([4, 1, 3])
    arguments = [paddle.to_tensor(a) for a in (scores, moves, lengths)]
    best, paths = viterbi_decode(*arguments, around)
    static = paddle.jit.to_static(lambda *a: viterbi_decode(*a, around), full_graph=True)(*arguments)
    assert static[1].tolist() == paths.tolist()
    assert ViterbiDecoder(arguments[1], around)(arguments[0], arguments[2])[1].tolist() == paths.tolist()
    for i, n in enumerate(lengths):

        def value(tags, i=i):
            total = sum(scores[i, t, tag] for t, tag in enumerate(tags))
            total += sum(moves[a, b] for a, b in itertools.pairwise(tags))
            return total + (moves[-2, tags[0]] + moves[tags[-1], -1] if around else 0.0)

        wanted = max(itertools.product(range(4), repeat=n), key=value)
        assert paths.numpy()[i].tolist() == [*wanted, *[0] * (4 - n)]
        np.testing.assert_allclose(best.numpy()[i], value(wanted), rtol=1e-5)
