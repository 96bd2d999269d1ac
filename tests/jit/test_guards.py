"""What counts as the same value at a later call."""

from typing import Any

import numpy as np
import pytest

from dy2st.jit.guards import watched_guards
from dy2st.jit.guards.guards import same

THING = object()


def scaled_by(n: Any) -> Any:
    return lambda x: x * n


@pytest.mark.parametrize(
    ("now", "before", "is_same"),
    [
        (THING, THING, True),
        (object(), THING, False),
        ((1, "a", (2.0,)), (1, "a", (2.0,)), True),
        ((1, "a", (2.0,)), (1, "a", (3.0,)), False),
        ((1, 2), (1,), False),
        ((1,), (1, 2), False),
        ((), (), True),
        (1, True, False),
        (1, 1.0, False),
        ([1], [1], False),
        (np.ones(1), np.ones(1), False),
        (scaled_by(2), scaled_by(2), True),
        (scaled_by(2), scaled_by(3), False),
    ],
)
def test_equal_values_of_simple_types_are_the_same(now: Any, before: Any, is_same: bool) -> None:
    assert same(now, before) is is_same


def test_guards_are_compared_as_words_however_late_machine_code_runs(monkeypatch):
    runs = []
    monkeypatch.setattr(watched_guards, "bring_in", lambda: None)
    monkeypatch.setattr(watched_guards.WatchedWords, "unchanged", lambda self: runs.pop() if runs else None)
    batch = watched_guards.GuardBatch()
    assert all(batch.again() is watched_guards.unknown for _ in range(2 * watched_guards.MOST_RENEWALS))
    runs.append(lambda: True)
    assert batch.again() is not watched_guards.unknown
