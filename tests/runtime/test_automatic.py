"""What runs a Program when nobody has chosen: the interpreter at first, native code when it is there."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes import optimise
from dy2st.runtime.aot_cache import artifacts
from dy2st.runtime.backends.cpu import shape_specialization
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.executor import tiering
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.interpreter.planned import Plan, compile_plan
from tests.in_threads import in_threads
from tests.runtime.programs import WANT, X, counting, looping, program_of, straight

pytestmark = pytest.mark.one_tier("looks at which tier runs, and at what was kept")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    return tmp_path


def backend_of(native_code_for):
    return SimpleNamespace(native_code_for=native_code_for, cached_code=shape_specialization.cached_code)


# ---- when ----------------------------------------------------------------------------------------------------------
def test_straight_code_runs_on_the_interpreter_first_and_natively_from_the_second_run_on():
    runner = TieredProgram(program_of(straight, X))
    runner.run([X])
    assert runner.native is None
    assert runner.run([X])[0] == pytest.approx(WANT, rel=1e-5)
    assert runner.native is not None


@pytest.mark.parametrize("quick", [False, True])
def test_code_that_was_kept_makes_the_first_run(quick):
    program = program_of(straight, X)
    shape_specialization.native_code(program, [X], quick=quick)
    runner = TieredProgram(program)
    assert runner.run([X])[0] == pytest.approx(WANT, rel=1e-5)
    assert runner.report().cached == 1
    assert runner.native.is_quick == quick
    for _ in range(2):
        runner.run([X])
    runner.finish_compiling()
    assert not runner.native.is_quick


def test_nothing_is_looked_for_where_nothing_can_be_kept(monkeypatch):
    looked = []
    monkeypatch.setattr(artifacts, "_state", artifacts._State())
    monkeypatch.setattr(shape_specialization, "cached_code", lambda *_: looked.append(1))
    for _ in range(2):
        TieredProgram(program_of(straight, X)).run([X])
    assert looked == []
    shape_specialization.native_code(program_of(counting(2), X), [X])
    TieredProgram(program_of(straight, X)).run([X])
    assert looked == [1]


def test_code_that_was_kept_for_other_extents_leaves_the_first_run_to_the_interpreter():
    def f(x, y):
        return paddle.tanh(x * y)

    program = program_of(f, X, X)
    shape_specialization.native_code(program, [X, X])
    runner, row = TieredProgram(program), X[:1]
    np.testing.assert_allclose(runner.run([X, row])[0], np.tanh(X * row), rtol=1e-5)
    assert runner.native is None
    runner.run([X, row])
    assert runner.report().versions == 1
    again = TieredProgram(program)
    np.testing.assert_allclose(again.run([X, X])[0], np.tanh(X * X), rtol=1e-5)
    np.testing.assert_allclose(again.run([X, row])[0], np.tanh(X * row), rtol=1e-5)
    assert (again.report().versions, again.report().cached) == (2, 2)


def test_without_a_folder_the_interpreter_makes_the_first_run(monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    program = program_of(straight, X)
    shape_specialization.native_code(program, [X])
    runner = TieredProgram(program)
    runner.run([X])
    assert runner.native is None


@pytest.mark.parametrize("function", [straight, looping])
def test_code_made_in_a_hurry_is_made_anew_beside_when_it_runs_again(function):
    runner = TieredProgram(program_of(function, X))
    while runner.native is None:
        runner.run([X])
    (plan,) = runner.native.plans
    assert runner.native.is_quick
    assert runner._job is None
    hurried, want = plan.call, runner.native.run([X])[0]
    runner.run([X])
    runner.finish_compiling()
    assert not runner.native.is_quick
    assert plan.call is not hurried
    assert runner.run([X])[0].tobytes() == want.tobytes()


def test_better_code_of_an_earlier_process_is_not_made_again():
    program = program_of(looping, X)
    shape_specialization.native_code(program, [X])
    runner = TieredProgram(program)
    runner.run([X])
    assert not runner.native.is_quick
    runner.run([X])
    assert runner._job is None


def test_a_loop_of_unknown_length_is_native_before_it_runs():
    runner = TieredProgram(program_of(looping, X))
    runner.run([X])
    assert runner.native is not None


@pytest.mark.parametrize(("turns", "at_once"), [(3, False), (100_000, True)])
def test_a_loop_of_known_length_is_native_at_once_where_it_is_long(turns, at_once):
    program = program_of(counting(turns), X)
    runner = TieredProgram(program)
    assert isinstance(runner._next([X]), Plan) != at_once


def up_to_rows(x):
    """Turn as often as there are rows: the extent of the input tells."""
    t = 0
    while t < x.shape[0]:
        x, t = paddle.tanh(x) * 2 + t, t + 1
    return x


@pytest.mark.parametrize(("rows", "at_once"), [(10, False), (100_000, True)])
def test_a_loop_up_to_an_extent_is_native_at_once_where_it_is_long(rows, at_once):
    program = optimise(program_of(up_to_rows, X))
    assert isinstance(TieredProgram(program)._next([np.zeros((rows, 1), "float32")]), Plan) != at_once


def test_native_code_of_a_loop_is_made_beside_once_it_has_run(monkeypatch):
    monkeypatch.setattr(tiering, "usable_cpus", lambda: 2)
    x = np.linspace(-1, 1, 3000, dtype="float32").reshape(600, 5)
    runner = TieredProgram(optimise(program_of(up_to_rows, X)))
    first = runner.run([x])[0]
    assert runner.native is None
    runner.finish_compiling()
    made = runner._making()
    np.testing.assert_allclose(runner.run([x])[0], first, rtol=1e-3)
    assert runner.native is made
    runner.run([x])
    runner.finish_compiling()
    assert not made.is_quick


def test_native_code_made_beside_runs_other_extents(monkeypatch):
    monkeypatch.setattr(tiering, "usable_cpus", lambda: 2)
    runner = TieredProgram(optimise(program_of(up_to_rows, X)))
    for rows in (600, 0, 3, 601):
        x = np.linspace(-1, 1, rows * 5, dtype="float32").reshape(rows, 5)
        want = compile_plan(runner.program).run([x])[0]
        np.testing.assert_allclose(runner.run([x])[0], want, rtol=1e-3, atol=1e-6)


def test_threads_that_run_again_meanwhile_wait_for_one_native_code(monkeypatch):
    monkeypatch.setattr(tiering, "usable_cpus", lambda: 2)
    x = np.linspace(-1, 1, 3000, dtype="float32").reshape(600, 5)
    runner = TieredProgram(optimise(program_of(up_to_rows, X)))
    want, made = runner.run([x])[0], []

    def work():
        for _ in range(3):
            np.testing.assert_allclose(runner.run([x])[0], want, rtol=1e-3)
        made.append(runner.native)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runner.finish_compiling()
    assert len(made) == 4
    assert set(map(id, made)) == {id(runner.native)}


def test_with_one_cpu_nothing_is_made_beside(monkeypatch):
    monkeypatch.setattr(tiering, "usable_cpus", lambda: 1)
    runner = TieredProgram(optimise(program_of(up_to_rows, X)))
    runner.run([np.zeros((600, 5), "float32")])
    assert runner._job is None
    runner.run([np.zeros((600, 5), "float32")])
    assert runner.native is not None


def test_what_takes_long_to_make_is_made_for_the_second_run(monkeypatch):
    monkeypatch.setattr(tiering, "usable_cpus", lambda: 2)
    monkeypatch.setattr(tiering, "_LONG_TO_MAKE", 0.0)
    runner = TieredProgram(optimise(program_of(up_to_rows, X)))
    runner.run([np.zeros((600, 5), "float32")])
    assert runner._job is None
    runner.run([np.zeros((600, 5), "float32")])
    assert runner.native is not None


def test_an_error_of_code_made_beside_is_that_of_the_next_run(monkeypatch):
    def broken(*_, **__):
        raise KeyError("no rule")

    monkeypatch.setattr(tiering, "usable_cpus", lambda: 2)
    monkeypatch.setattr(tiering, "_BACKEND", backend_of(broken))
    runner = TieredProgram(optimise(program_of(up_to_rows, X)))
    x = np.zeros((600, 5), "float32")
    want = runner.run([x])[0]
    runner.finish_compiling()
    with pytest.warns(RuntimeWarning, match="no native code could be made of it: KeyError: 'no rule'"):
        assert runner.run([x])[0].tobytes() == want.tobytes()


def test_a_run_that_raises_leaves_the_code_to_the_next():
    def late(x):
        t = 0
        while t < x.shape[0]:
            assert (x < 5).all()
            x, t = x + 1, t + 1
        return x

    runner = TieredProgram(optimise(program_of(late, np.full((2, 3), -9, "float32"))))
    for _ in range(3):
        with pytest.raises(AssertionError):
            runner.run([np.zeros((600, 5), "float32")])
    assert runner.native is not None


def test_always_is_at_once():
    runner = TieredProgram(program_of(straight, X), always=True)
    runner.run([X])
    assert runner.native is not None
    assert not runner.native.is_quick


def test_many_elements_of_a_slow_op_are_native_at_once():
    program = program_of(paddle.erf, X)
    assert isinstance(TieredProgram(program)._next([X]), Plan)
    assert not isinstance(TieredProgram(program)._next([np.ones((1000, 1000), "float32")]), Plan)


# ---- what goes wrong -----------------------------------------------------------------------------------------------
def test_an_error_of_the_thread_beside_is_shown_and_runs_go_on(monkeypatch):
    def fail(self):
        raise AssertionError("no rule gave that")

    shown = []
    monkeypatch.setattr(threading, "excepthook", shown.append)
    monkeypatch.setattr(NativePlan, "improve", fail)
    runner = TieredProgram(program_of(straight, X))
    for _ in range(3):
        runner.run([X])
    runner.finish_compiling()
    assert [str(one.exc_value) for one in shown] == ["no rule gave that"]
    assert runner.run([X])[0] == pytest.approx(WANT, rel=1e-5)


def test_without_a_thread_the_hurried_code_goes_on(monkeypatch):
    def none_left(function):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(tiering, "BackgroundJob", none_left)
    runner = TieredProgram(program_of(straight, X))
    for _ in range(4):
        assert runner.run([X])[0] == pytest.approx(WANT, rel=1e-5)
    assert runner.native.is_quick


def test_many_threads_get_one_native_code():
    runner = TieredProgram(program_of(straight, X))
    wrong = []

    def work():
        for _ in range(50):
            if abs(float(runner.run([X])[0]) - WANT) > 1e-4:
                wrong.append(1)

    in_threads(*[work] * 8)
    runner.finish_compiling()
    runner.run([X])
    assert wrong == []
    assert runner.native is not None


@pytest.mark.slow
def test_a_process_that_ends_while_code_is_made_ends_well(folder):
    code = """
import linecache, numpy as np
text = "def f(x):\\n    return (x.exp() * 2).sum(axis=0)\\n"
linecache.cache["f.py"] = (len(text), None, text.splitlines(True), "f.py")
space = {}
exec(compile(text, "f.py", "exec"), space)
import dy2st as paddle
f = paddle.jit.to_static(space["f"], full_graph=True)
for _ in range(3):
    f(paddle.ones([3, 2]))
print("done")
"""
    environment = {**os.environ, "DY2ST_BACKEND": "auto", "DY2ST_CACHE_DIR": str(folder)}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (said.stdout, said.stderr, said.returncode) == ("done\n", "", 0)
    assert list(folder.glob("*.o"))  # the next process starts with it


def test_another_module_that_cannot_be_loaded_is_no_missing_llvmlite(monkeypatch):
    def broken(*_, **__):
        raise ImportError("cannot import name 'part'")

    monkeypatch.setattr(tiering, "_BACKEND", backend_of(broken))
    with pytest.raises(ImportError, match="cannot import name 'part'"):
        TieredProgram(program_of(straight, X), always=True).run([X])
    runner = TieredProgram(program_of(straight, X))
    runner.run([X])
    with pytest.warns(RuntimeWarning, match="no native code could be made of it: ImportError: cannot import name"):
        runner.run([X])


def test_a_program_that_cannot_be_made_native_still_runs(monkeypatch):
    def broken(*_, **__):
        raise KeyError("no rule")

    monkeypatch.setattr(tiering, "_BACKEND", backend_of(broken))
    runner = TieredProgram(program_of(straight, X))
    runner.run([X])
    with pytest.warns(RuntimeWarning, match="no native code could be made of it: KeyError: 'no rule'"):
        assert runner.run([X])[0] == pytest.approx(WANT, rel=1e-5)
    assert isinstance(runner._chosen, Plan)
    with pytest.raises(KeyError, match="no rule"):
        TieredProgram(runner.program, always=True).run([X])
