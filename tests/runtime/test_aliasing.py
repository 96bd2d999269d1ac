"""What a trace notes of tensors that may be one."""

import random

import pytest

import dy2st as paddle
from dy2st.runtime.tracer.effects.alias_analysis import AliasAnalysis

COUNT = 12


@pytest.mark.parametrize("seed", range(20))
def test_tensors_that_may_be_one_form_groups(seed):
    chosen = random.Random(seed)
    tensors, aliases = [paddle.ones([1]) for _ in range(COUNT)], AliasAnalysis()
    want = [{i} for i in range(COUNT)]
    for _ in range(chosen.randint(1, 14)):
        some = [chosen.randrange(COUNT) for _ in range(chosen.randint(1, 4))]
        aliases.same([tensors[i] for i in some])
        together = set().union(*(want[i] for i in some))
        for i in together:
            want[i] = together
    for i, t in enumerate(tensors):
        others = [id(x) for x in aliases.others(t)]
        assert len(others) == len(set(others))
        assert set(others) == {id(tensors[j]) for j in want[i] if j != i}
