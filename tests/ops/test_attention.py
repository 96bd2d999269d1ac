"""Attention in parts: however many queries are taken together, the values are the same."""

import numpy as np
import pytest

from dy2st.ops.nn import attention
from tests.ops.evaluate import as_list
from tests.ops.test_registry import cases


@pytest.mark.parametrize("room", [1, 7, 20])
@pytest.mark.parametrize(("op", "sample"), cases(lambda op, _: op.name.startswith("attention")))
def test_parts_make_the_whole(op, sample, room, monkeypatch):
    evaluate = lambda: op.eval(np, *sample.operands, **sample.attributes)
    whole = evaluate()
    monkeypatch.setattr(attention, "_ROOM", room)
    count = len(whole) if isinstance(whole, tuple) else 1
    for found, wanted in zip(as_list(evaluate(), range(count)), as_list(whole, range(count)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
