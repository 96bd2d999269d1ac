"""Random programs of Python objects: results, and all that they leave outside, are those of eager mode at each call."""

from __future__ import annotations

import functools

import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from tests.jit import object_programs


def check(seed: int) -> bool:
    """Hold a program against eager mode; say whether it was converted."""
    source = object_programs.program(seed)
    eager = object_programs.history(source, f"<eager {seed}>", lambda f: f)
    wrap = functools.partial(paddle.jit.to_static, full_graph=True)
    static = object_programs.history(source, f"<static {seed}>", wrap, Dy2stError)
    refused = isinstance(static[-1], Dy2stError)
    static = static[:-1] if refused else static
    for call, (wanted, found) in enumerate(zip(eager, static, strict=False)):
        assert found == wanted, f"call {call} of program {seed}:\n{source.partition('def f')[2]}"
    return not refused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 20))
def test_objects_are_as_in_eager_mode(start):
    assert sum(check(seed) for seed in range(start, start + 20)) >= 18
