"""What is said of how Programs run."""

from collections import Counter

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.executor.report import Report
from dy2st.runtime.executor.tiering import TieredProgram


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def explained(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    static(*inputs)
    return static.explain()


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (Report(), "operation by operation"),
        (Report(versions=1, seconds=0.03, is_being_made=True), "native code, made in 30 ms; better code is being made"),
        (Report(versions=1, seconds=0.0123), "native code, made in 12 ms"),
        (Report(versions=1, cached=1, seconds=0.002), "native code, kept from before, loaded in 2 ms"),
        (Report(versions=3, cached=1, seconds=1.25), "native code in 3 versions, made or loaded in 1.2 s"),
        (
            Report(versions=1, host_calls=Counter(sort=2, print=1)),
            "native code, made in 0 ms; Python for print, 2 sort",
        ),
        (Report(versions=1, elsewhere=1), "native code, made in 0 ms; 1 run operation by operation"),
        (Report(versions=1, elsewhere=2, peak=10), "made in 0 ms; at most 10 B beside the inputs; 2 runs operation by"),
    ],
)
def test_reports_as_text(report, said):
    assert said in str(report)


def test_explain_says_how_a_program_runs(rng):
    x = paddle.to_tensor(rng.normal(size=(50, 100)).astype("float32"))
    first = explained(lambda x: paddle.cumsum(paddle.exp(x).astype("float16"), axis=0), x)
    ((role, report),) = first.runs[0]
    assert (role, report.versions, report.cached) == ("", 1, 0)
    assert report.host_calls == Counter(cumsum=1)
    assert "native code, made in" in str(first)
    assert "Python for cumsum" in str(first)


def test_explain_says_what_was_kept(rng):
    x = paddle.to_tensor(rng.normal(size=(50, 100)).astype("float32"))
    for cached in (0, 1):
        ((_, report),) = explained(lambda x: paddle.exp(x).sum(), x).runs[0]
        assert report.cached == cached


def test_explain_says_how_derivatives_run():
    x = paddle.ones([3, 4])
    x.stop_gradient = False
    static = paddle.jit.to_static(lambda x: paddle.exp(x).sum(), full_graph=True)
    static(x).backward()
    roles = [role for role, _ in static.explain().runs[0]]
    assert "the gradient" in roles
    assert "the gradient: native code" in str(static.explain())


def test_what_the_interpreter_was_told_to_run_is_not_reported(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "interpreter")
    assert explained(lambda x: x + 1, paddle.ones([3])).runs == [[]]


def test_the_most_memory_of_the_last_run():
    def f(x):
        for _ in range(5):
            x = paddle.tanh(x @ x)
        return x.sum()

    static = paddle.jit.to_static(f, full_graph=True)
    runner = None
    peaks = []
    for n in (400, 100, 400):
        with paddle.no_grad():
            static(paddle.ones([n, n]))
        runner = runner or TieredProgram(static.concrete_program.main_program, always=True)
        runner.run([np.ones((n, n), "float32")])
        peaks.append(runner.report().peak)
    assert peaks[0] == peaks[2]
    assert 400 * 400 * 4 <= peaks[0] < 5 * 400 * 400 * 4  # neither nothing nor every turn's
    assert peaks[1] < peaks[0] / 4


def test_memory_of_lists_is_counted():
    def f(x):
        parts = []
        for i in range(x.shape[0]):
            parts.append(x[i] * 2)
        return parts

    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(paddle.ones([3, 1000]))
    runner = TieredProgram(static.concrete_program.main_program, always=True)
    runner.run([np.ones((20, 1000), "float32")])
    assert runner.report().peak >= 20 * 1000 * 4


def test_runs_that_the_interpreter_took_over_are_counted():
    static = paddle.jit.to_static(lambda x, n: x * n, full_graph=True)
    with paddle.no_grad():
        static(paddle.ones([3]), 2)
        static(paddle.ones([3]), 3)
    runner = TieredProgram(static.concrete_program.main_program, always=True)
    x = np.ones(3, "float32")
    runner.run([x, 2])
    assert runner.report().elsewhere == 0
    runner.run([x, 2**70])
    assert runner.report().elsewhere == 1
