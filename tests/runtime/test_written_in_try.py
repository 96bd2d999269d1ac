"""A write in a `try` is made in place where the handler does not read what was there, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ops.indexing.getitem import IndexSet

T = paddle.to_tensor


def raises_before(y: Any, c: Any) -> Any:
    for i in range(4):
        try:
            if c[i] > 0:
                raise ValueError("early")
            y[i] = y[i] * 2.0
        except ValueError:
            y[i] = -1.0
    return y


def raises_after(y: Any, c: Any) -> Any:
    for i in range(4):
        try:
            y[i] = y[i] * 2.0
            if c[i] > 0:
                raise ValueError("late")
        except ValueError:
            y[i] = y[i] - 100.0
    return y


def passes(y: Any, c: Any) -> Any:
    for i in range(4):
        try:
            y[i] = y[i] * 2.0
            if c[i] > 0:
                raise ValueError("late")
            y[i] = y[i] + 1.0
        except ValueError:
            pass
    return y


def in_a_branch(y: Any, c: Any) -> Any:
    for i in range(4):
        try:
            if c[i] > 0:
                y[i] = y[i] * 3.0
                if c[i] > 1:
                    raise ValueError("inside")
            else:
                y[i] = y[i] * 2.0
        except ValueError:
            y[0] = y[0] + y[i]
    return y


def nested(y: Any, c: Any) -> Any:
    for i in range(4):
        try:
            try:
                y[i] = y[i] * 2.0
                if c[i] > 0:
                    raise ValueError("inner")
            except ValueError:
                y[i] = y[i] + 10.0
                if c[i] > 1:
                    raise KeyError("outer") from None
        except KeyError:
            y[i] = y[i] * y[0]
        finally:
            y[i] += 0.5
    return y


def reads_what_was_there(y: Any, c: Any) -> Any:
    for i in range(4):
        old = y * 1.0
        try:
            old[i] = old[i] * 2.0
            y = old
            if c[i] > 0:
                raise ValueError("late")
        except ValueError:
            y = y + old
    return y


def by_itself(y: Any, c: Any) -> Any:
    for i in range(4):
        try:
            y[i] = y[i] * 2.0
            y[c[i].astype("int64") + 3] = 7.0
        except IndexError:
            y[i] = y[i] - 100.0
    return y


def keeps_a_view(y: Any, c: Any) -> Any:
    total = paddle.zeros([2])
    for i in range(4):
        try:
            row = y[i]
            y[i] = row * 2.0
            if c[i] > 0:
                raise ValueError("late")
        except ValueError:
            total = total + row
        total = total + row
    return y + total


FUNCTIONS: list[Callable[[Any, Any], Any]] = [
    raises_before, raises_after, passes, in_a_branch, nested, reads_what_was_there, by_itself, keeps_a_view,
]  # fmt: skip
CHOICES = ([-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 1.0], [2.0, -1.0, 1.0, 2.0], [-1.0, 2.0, 2.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_writes_in_a_try_are_those_of_eager(
    function: Callable[[Any, Any], Any], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    static = paddle.jit.to_static(lambda x, c: function(x * 1.0, c), full_graph=True)
    in_loop = paddle.jit.to_static(lambda x, c: function(x, c), full_graph=True)
    x = np.arange(8, dtype=np.float32).reshape(4, 2) + 1.0
    for choice in CHOICES:
        want = function(T(x), T(choice)).numpy()
        np.testing.assert_array_equal(static(T(x), T(choice)).numpy(), want)
        np.testing.assert_array_equal(in_loop(T(x), T(choice)).numpy(), want)


@pytest.mark.parametrize("function", [raises_before, raises_after, nested, by_itself], ids=lambda f: f.__name__)
def test_a_write_in_a_try_in_a_loop_copies_nothing(
    function: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "interpreter")
    copied = []

    def counted(self: Any, xp: Any, *operands: Any, **attributes: Any) -> Any:
        copied.append(1)
        return before(self, xp, *operands, **attributes)

    before = IndexSet.eval
    monkeypatch.setattr(IndexSet, "eval", counted)
    static = paddle.jit.to_static(lambda x, c: function(x * 1.0, c), full_graph=True)
    static(paddle.ones([4, 2]), T(CHOICES[0]))
    copied.clear()
    static(paddle.ones([4, 2]), T(CHOICES[0]))
    assert not copied
