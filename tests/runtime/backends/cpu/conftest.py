"""Native code between forbidden pages and for other CPUs, for tests that ask for it; threads as before after each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import TARGETS, Guarded, runnable


@pytest.fixture(autouse=True)
def beside() -> None:
    """Run nothing a second time: these tests compare native code with the interpreter themselves."""


@pytest.fixture(autouse=True)
def thread_count() -> Iterator[None]:
    """Let a test say how many threads native code uses."""
    before = paddle.get_num_threads()
    yield
    if paddle.get_num_threads() != before:
        paddle.set_num_threads(before)


@pytest.fixture(params=TARGETS)
def each_cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make code for one kind of CPU after the other, those that this one can stand for; give its name."""
    if not runnable(request.param):
        pytest.skip(f"this CPU does not run {request.param}")
    monkeypatch.setenv("DY2ST_CPU", request.param)
    return request.param


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every block of native code, and every input, a forbidden page behind it."""
    monkeypatch.setenv("DY2ST_GUARD", "1")
    for name in ("run", "attempt"):
        monkeypatch.setattr(NativePlan, name, _on_guarded_inputs(getattr(NativePlan, name)))


def _on_guarded_inputs(run: Callable[..., Any]) -> Callable[..., Any]:
    def on_guarded_inputs(plan: NativePlan, inputs: Sequence[Any]) -> Any:
        return run(plan, [Guarded(x).array if _lies_together(x) else x for x in inputs])

    return on_guarded_inputs


def _lies_together(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.flags.c_contiguous
