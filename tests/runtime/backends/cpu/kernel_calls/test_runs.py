"""Native runs from several threads and processes; results that live on; the cache of object files."""

import gc
import multiprocessing
import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import config
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.interpreter.planned import Plan, compile_plan
from tests.in_threads import in_threads

CODE = """
import numpy as np, dy2st as paddle
f = paddle.jit.to_static(lambda x: paddle.tanh(x * 2).sum(axis=1))
x = paddle.to_tensor(np.ones((3, 40), "float32"))
f(x)
print(f(x).numpy()[0])
"""


@pytest.fixture
def native(rng):
    def f(x):
        out = []
        for row in x:
            if row.sum() > 0:
                out.append(paddle.tanh(row) * 2)
            else:
                out.append(row @ row.reshape([-1, 1]) + row)
        return paddle.stack(out), x.mean()

    static = paddle.jit.to_static(f, full_graph=True)
    static(paddle.to_tensor(rng.normal(size=(3, 5)).astype("float32")))
    return NativePlan(static.concrete_program.main_program)


def test_threads_give_the_same_bits(native, rng):
    inputs = [rng.normal(size=(n, 50)).astype("float32") for n in range(1, 9)]
    want = [native.run([x]) for x in inputs]
    wrong = []

    def work(k):
        for _ in range(100):
            if any((a != b).any() for a, b in zip(native.run([inputs[k]]), want[k], strict=True)):
                wrong.append(k)

    in_threads(*(partial(work, k) for k in range(8)))
    assert wrong == []


def test_results_live_on_when_the_program_runs_again(native, rng):
    x = rng.normal(size=(60, 50)).astype("float32")
    first = native.run([x])[0]
    kept = first.copy()
    for _ in range(20):
        native.run([-x])
    np.testing.assert_array_equal(first, kept)
    first += 1  # the caller's own memory
    np.testing.assert_array_equal(native.run([x])[0], kept)


def test_results_live_longer_than_their_program(native, rng):
    x = rng.normal(size=(60, 50)).astype("float32")
    plan = NativePlan(native.program)
    made = plan.run([x])[0]
    kept = made.copy()
    del plan
    np.testing.assert_array_equal(made, kept)


def _child(native, x, queue):
    queue.put(float(native.run([x])[1]))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_runs_it(native, rng):
    x = rng.normal(size=(4, 50)).astype("float32")
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    for _ in range(5):
        process = context.Process(target=_child, args=(native, x, queue))
        process.start()
        assert queue.get() == float(native.run([x])[1])
        process.join(30)
        assert process.exitcode == 0


@pytest.mark.slow
def test_processes_share_a_cache_that_may_be_broken(tmp_path):
    environment = {**os.environ, "DY2ST_CACHE_DIR": str(tmp_path), "DY2ST_BACKEND": "native"}
    run = [sys.executable, "-c", "import linecache; code = " + repr(CODE) + "\n"
           "linecache.cache['code.py'] = (len(code), None, code.splitlines(True), 'code.py')\n"
           "exec(compile(code, 'code.py', 'exec'))"]  # fmt: skip
    processes = [subprocess.Popen(run, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=100)[0] for process in processes]
    assert len({*said}) == 1
    files = sorted(tmp_path.glob("*.o"))
    assert files
    assert not list(tmp_path.glob("*.part"))
    for number, file in enumerate(files):
        file.write_bytes(file.read_bytes()[:100] if number % 2 else b"nonsense")
    assert subprocess.run(run, env=environment, capture_output=True, text=True, timeout=100).stdout == said[0]


def test_the_cache_keeps_nothing_where_it_may_not(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("not a folder")
    disk_cache.write("key", b"content")
    assert disk_cache.read("key") is None
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    disk_cache.write("key", b"content")
    assert disk_cache.read("key") is None


def test_an_error_leaves_the_plan_usable(native):
    with pytest.raises(ValueError, match="takes 1 inputs"):
        native.run([])
    assert native.run([np.ones((2, 4), "float32")])[0].shape == (2, 4)


def test_a_loop_that_would_call_python_stays_with_the_interpreter(rng):
    def f(x):
        while x.sum() < 100:
            x = paddle.cumsum(x.astype("float16"), axis=0).astype("float32") + x
        return x

    x = np.diag(np.arange(1.0, 4.0, dtype="float32"))
    static = paddle.jit.to_static(f, full_graph=True)
    static(paddle.to_tensor(x))
    program = static.concrete_program.main_program
    assert not NativePlan(program).is_worth_it
    runner = TieredProgram(program)
    np.testing.assert_array_equal(runner.run([x])[0], compile_plan(program).run([x])[0])
    assert isinstance(runner._chosen, Plan)


def test_an_unknown_backend_is_refused(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "fast")
    with pytest.raises(ValueError, match="DY2ST_BACKEND is one of auto, native, interpreter, not 'fast'"):
        config.backend()


def test_a_result_that_is_an_argument_is_the_same_array(rng):
    static = paddle.jit.to_static(lambda x, y: (x.detach(), x + 1, y), full_graph=True)
    x, y = (rng.normal(size=(40, 50)).astype("float32") for _ in range(2))
    static(paddle.to_tensor(x), paddle.to_tensor(y))
    program = static.concrete_program.main_program
    for made in (NativePlan(program).run([x, y]), compile_plan(program).run([x, y])):
        assert made[0] is x
        assert made[1] is not x
        assert made[2] is y


def test_a_result_that_is_an_argument_holds_it(rng):
    static = paddle.jit.to_static(lambda x: (x.detach(), x + 1), full_graph=True)
    x = rng.normal(size=(40, 50)).astype("float32")
    static(paddle.to_tensor(x))
    plan = NativePlan(static.concrete_program.main_program)
    held = sys.getrefcount(x)
    results = [plan.run([x])[0] for _ in range(100)]
    assert sys.getrefcount(x) == held + 100
    results.clear()
    assert sys.getrefcount(x) == held


def test_what_python_reads_of_a_function_lives_as_long_as_the_function(native):
    plan = NativePlan(native.program)
    call = plan.call
    del plan
    gc.collect()
    definition: Any = call.__module__
    assert definition.name == b"dy2st"
    assert sys.getrefcount(definition) > 2
