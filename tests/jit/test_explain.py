"""What `explain()` says of Programs, calls, fixed values and fallbacks."""

import contextlib
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.static_function import FallbackWarning

T = paddle.to_tensor
MODE = "sum"


class Pool:
    factor = 2.0

    @paddle.jit.to_static
    def run(self, x: Any, way: str = "up", times: int = 1) -> Any:
        y = x.sum() if MODE == "sum" else x.mean()
        return y * self.factor * times if way == "up" else y


def text(pool: Any) -> str:
    return str(pool.run.explain())


def test_calls_are_counted_however_they_are_found() -> None:
    pool = Pool()
    for _ in range(5):
        pool.run(T([1.0]))
    pool.run(T([[1.0]]))
    assert text(pool).startswith("Pool.run: 2 programs, 6 calls\n")
    assert "used by 5 calls" in text(pool)
    assert pool.run.explain().calls == 6


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda run: run(T([[1.0]])), "`x` is float32, rank 2, was float32, rank 1"),
        (lambda run: run(T([1])), "`x` is int64, rank 1, was float32, rank 1"),
        (lambda run: run(T([1.0], stop_gradient=False)), "`x` is float32, rank 1, needs a gradient, was"),
        (lambda run: run(T([1.0]), "down"), "`way` is 'down', was 'up'"),
        (lambda run: run(T([1.0]), times=7), "`times` is any int, was 1"),
        (lambda run: run([T([1.0])][0], None, 2), "`way` is None, was 'up'"),
    ],
)
def test_a_call_that_is_traced_says_in_what_it_differs(call: Any, why: str) -> None:
    pool = Pool()
    pool.run(T([1.0]))
    call(pool.run)
    assert f"at call 2: {why}" in text(pool)


def test_gradient_mode_is_a_difference() -> None:
    pool = Pool()
    pool.run(T([1.0]))
    with paddle.no_grad():
        pool.run(T([1.0]))
    assert "at call 2: `gradients` is not recorded, was recorded" in text(pool)


def test_a_program_says_why_it_did_not_serve_calls_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    pool.run(T([1.0]))
    monkeypatch.setattr(f"{__name__}.MODE", "mean")
    for _ in range(3):
        pool.run(T([1.0]))
    program = pool.run.explain().programs[0]
    assert program.refused == 2  # the third of these calls was recognised as one for the other Program
    assert program.refusal == "the global 'MODE' has changed: it was 'sum' and is 'mean'"
    assert "used by 1 call; not for 2 calls: the global 'MODE' has changed" in text(pool)


def test_values_that_a_program_takes_as_fixed() -> None:
    pool = Pool()
    pool.run(T([1.0]), times=3)
    (fixed,) = pool.run.explain().specialised
    assert set(fixed) >= {"`way` is 'up'", "`times` is 3", "the global 'MODE' is 'sum'", ".factor of a Pool is 2.0"}
    assert "only where" in text(pool)


def test_more_values_than_fit_are_counted() -> None:
    static = paddle.jit.to_static(lambda x, *more: x * more[0])
    static(T([1.0]), *range(1, 12))
    assert ", and 3 more" in str(static.explain())


def test_a_fallback_has_its_line_and_its_calls() -> None:
    @paddle.jit.to_static
    def reads(x):
        return float(np.asarray(x.numpy()).sum())

    with pytest.warns(FallbackWarning):
        assert reads(T([1.0])) == 1.0
    assert reads(T([2.0])) == 2.0
    found = reads.explain()
    assert "test_explain.py:" in found.fallbacks[0]
    assert found.eager_calls == found.calls == 2
    assert "2 calls ran eagerly" in str(found)


def test_a_call_that_is_traced_for_itself_says_so() -> None:
    static = paddle.jit.to_static(lambda items: next(items) + 1)
    static(iter([T([1.0])]))
    assert static.explain().events == ["call 1 was traced for itself alone: an iterator is used up"]

    def fails(x):
        x[0] = 5.0
        raise ValueError("no")

    failing = paddle.jit.to_static(fails, full_graph=True)
    with contextlib.suppress(ValueError):
        failing(T([1.0]))
    assert failing.explain().events == ["call 1 was traced for itself alone: it raises on every path"]


def test_nothing_was_called_yet() -> None:
    assert str(paddle.jit.to_static(lambda x: x).explain()) == "<lambda>: 0 programs, 0 calls\n  no fallback".replace(
        "<lambda>", "test_nothing_was_called_yet.<locals>.<lambda>"
    )


class Pair:
    def __init__(self, x: Any):
        self.x = x


def test_an_object_that_is_new_is_told_from_one_that_is_known() -> None:
    static = paddle.jit.to_static(lambda pair, f: f(pair.x), full_graph=True)
    for value in (1.0, 2.0, 3.0):
        static(Pair(T([value])), paddle.abs)
    found = static.explain()
    assert "`pair` is any object of Pair, was this object of Pair" in str(found)
    assert "`f` is the function abs" in found.specialised[1]
