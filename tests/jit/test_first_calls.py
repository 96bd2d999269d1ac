"""Calls that run eagerly as well, to be compared."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import dy2st as paddle
from dy2st.errors import Mismatch
from dy2st.ir.context import current
from dy2st.jit.dispatch import first_calls
from dy2st.runtime.executor import executable


@pytest.fixture(autouse=True)
def two_calls() -> Iterator[None]:
    paddle.jit.verify_first_calls(2)
    yield
    paddle.jit.verify_first_calls(0)


def test_first_calls_that_agree_happen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    made = first_calls.verified
    monkeypatch.setattr("dy2st.jit.static_function.verified", lambda f, n, a, k: asked.append(n) or made(f, n, a, k))
    seen: list[float] = []

    @paddle.jit.to_static
    def f(x: Any) -> Any:
        seen.append(1.0)
        return x * 2

    for i in range(4):
        assert f(paddle.to_tensor([float(i)])).tolist() == [2.0 * i]
    assert seen == [1.0] * 4
    assert asked[0] == 0


def test_a_first_call_that_differs_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    run = executable.Compiled.run
    monkeypatch.setattr(executable.Compiled, "run", lambda self, *inputs: [r + 1 for r in run(self, *inputs)])
    f = paddle.jit.to_static(lambda x: x * 2)
    with paddle.no_grad(), pytest.raises(Mismatch):
        f(paddle.to_tensor([1.0]))


@pytest.mark.parametrize("count", [-1, True, "2"])
def test_a_count_that_is_none_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match="a number of calls"):
        paddle.jit.verify_first_calls(count)


@pytest.mark.slow
def test_the_environment_sets_the_count() -> None:
    code = "import dy2st; from dy2st.ir.context import current; print(current().process.verified_calls)"
    environment = {**os.environ, "DY2ST_VERIFY_CALLS": "3"}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "3"
    assert current().process.verified_calls == 2


def test_a_function_under_vmap_agrees_with_itself_item_by_item() -> None:
    double = paddle.incubate.autograd.vmap(lambda x: x.sum() * x)
    assert double(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[3.0, 6.0], [21.0, 28.0]]
