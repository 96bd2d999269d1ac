"""A function that is traced again and again says so, once."""

import warnings
from typing import Any

import pytest

import dy2st as paddle
from dy2st.jit.retracing import MANY, RetraceWarning


class Mode:
    name = "0"


def told(function: Any, calls: list[tuple[Any, ...]]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for mode, *arguments in calls:
            Mode.name = mode
            function(*arguments)
    assert {(w.category, w.filename) for w in found} <= {(RetraceWarning, __file__)}
    return [str(w.message) for w in found]


def by_mode(x: Any) -> Any:
    return x * 2 if Mode.name == "twice" else x


def used_up(x: Any, items: Any) -> Any:
    for item in items:
        x = x + item
    return x


def test_the_guard_that_changes_is_named_once() -> None:
    found = told(paddle.jit.to_static(by_mode), [(str(i), paddle.ones([2])) for i in range(MANY + 4)])
    assert len(found) == 1
    assert found[0].startswith("`by_mode` (")
    assert "was traced 16 times, the last time because Mode.name has" in found[0]
    assert "it was '14' and is '15'" in found[0]


def test_calls_that_are_traced_for_themselves_count() -> None:
    calls = [("", paddle.ones([2]), iter([1, 2])) for _ in range(MANY)]
    found = told(paddle.jit.to_static(used_up), calls)
    assert len(found) == 1
    assert "the last time because an iterator is used up" in found[0]


@pytest.mark.parametrize("times", [1, 3 * MANY])
def test_calls_that_find_their_program_are_silent(times: int) -> None:
    assert told(paddle.jit.to_static(by_mode), [("same", paddle.ones([i + 1])) for i in range(times)]) == []
