"""What is compiled beside, while the text of a Program's code is written."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu import precompile, runtime_library_symbols
from dy2st.runtime.backends.cpu.compile_link import code_loader
from dy2st.runtime.backends.cpu.compile_link.parallel_map import Once
from dy2st.runtime.backends.cpu.precompile import begin, likely, precompiled, where_nothing_is_cached
from dy2st.runtime.backends.cpu.python_abi import helpers, interrupts
from dy2st.runtime.backends.cpu.thread_pool import pool
from dy2st.runtime.executor import select
from tests.in_threads import in_threads


def program_of(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def repeated(x, w):
    while (x @ w).abs().sum() < 100:
        x = x * 2
    return x


@pytest.fixture
def asked(monkeypatch):
    """The kernels of the library that were asked for."""
    names = []
    monkeypatch.setattr(
        runtime_library_symbols, "jobs", lambda kernels, strict, haste: names.extend(kernels) or [lambda: None]
    )
    return names


def test_a_program_with_products_in_a_loop(asked):
    program = program_of(repeated, np.ones((3, 20), "float64"), np.eye(20))
    found = list(likely(program, False, "all"))
    assert asked == ["gemm.f64.nn", "gemm.f64.packed.n", "gemm.f64.pack_b.n"]
    assert [f for f in found if f in (pool.product, helpers.product, interrupts.product)] == [
        pool.product, helpers.product, interrupts.product,
    ]  # fmt: skip


def test_a_program_without_loops(asked):
    program = program_of(lambda x, w: x @ w, np.ones((3, 20), "float32"), np.ones((20, 3), "float32"))
    found = list(likely(program, False, "all"))
    assert asked == ["gemm.f32.nn"]
    assert interrupts.product not in found


def test_a_program_on_numbers_alone_needs_no_threads(asked):
    found = list(likely(program_of(lambda x: x * 2 + 1, np.array(3.0)), False, "all"))
    assert asked == []
    assert pool.product not in found


def test_nothing_is_begun_once_the_block_has_ended(monkeypatch):
    started, go, called = threading.Event(), threading.Event(), []

    def first():
        started.set()
        go.wait(5)

    monkeypatch.setattr(precompile, "likely", lambda *_: iter([first, lambda: called.append(1)]))
    monkeypatch.setattr(precompile, "usable_cpus", lambda: 2)
    with precompiled(program_of(lambda x: x + 1, np.ones(3)), False, "all"):
        assert started.wait(5)
        threading.Timer(0.05, go.set).start()
    assert called == []


def test_with_one_cpu_there_is_no_thread(monkeypatch):
    monkeypatch.setattr(precompile, "usable_cpus", lambda: 1)
    monkeypatch.setattr(precompile, "likely", lambda *_: pytest.fail("nothing is to be made"))
    with precompiled(program_of(lambda x: x + 1, np.ones(3)), False, "all"):
        pass


def test_an_error_is_left_to_who_needs_what_was_to_be_made(monkeypatch):
    def fails():
        raise RuntimeError("no memory")

    monkeypatch.setattr(precompile, "likely", lambda *_: iter([fails]))
    monkeypatch.setattr(precompile, "usable_cpus", lambda: 2)
    with precompiled(program_of(lambda x: x + 1, np.ones(3)), False, "all"):
        pass
    once = Once(fails)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no memory"):
            once()


def test_what_all_loops_call_is_there_after_begin(monkeypatch):
    made = []
    monkeypatch.setattr(code_loader, "made", lambda recipe, make: made.append(recipe) or (make(), False))
    monkeypatch.setattr(code_loader, "_shared", {})
    begin()
    assert len(made) == 2
    assert helpers.product() is helpers.product()
    assert len(made) == 2


def test_threads_that_ask_at_once_get_one_result():
    made, results = [], []

    def make():
        made.append(1)
        time.sleep(0.02)
        return object()

    once = Once(make)
    in_threads(*[lambda: results.append(once())] * 4)
    assert len(made) == 1
    assert len(set(map(id, results))) == 1


@pytest.mark.parametrize("was_kept", [False, True])
def test_the_first_loop_begins_once_where_nothing_is_kept(monkeypatch, tmp_path, was_kept):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(code_loader, "_shared", {})
    if was_kept:
        begin()
    begun, done = [], threading.Event()
    monkeypatch.setattr(select, "begin", lambda: begun.append(1) or done.set())
    monkeypatch.setattr(select, "usable_cpus", lambda: 2)
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    select.expect_loops.cache_clear()
    for _ in range(2):
        program_of(repeated, np.ones((3, 20), "float32"), np.eye(20, dtype="float32"))
    assert was_kept or done.wait(5)
    assert begun == [1] * (not was_kept)


def test_a_block_inside_of_another_leaves_that_to_it(monkeypatch):
    begun = []
    monkeypatch.setattr(precompile, "likely", lambda *_: begun.append(1) or iter([]))
    monkeypatch.setattr(precompile, "usable_cpus", lambda: 2)
    program = program_of(lambda x: x + 1, np.ones(3))
    with precompiled(program, False, "all"), precompiled(program, False, "all"):
        assert begun == [1]
    with precompiled(program, False, "all"):
        assert begun == [1, 1]


@pytest.mark.parametrize("was_kept", [False, True])
def test_before_a_program_is_looked_for_only_where_nothing_is_kept(monkeypatch, tmp_path, was_kept):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(code_loader, "_shared", {})
    if was_kept:
        helpers.product()
    begun = threading.Event()
    monkeypatch.setattr(precompile, "likely", lambda *_: iter([begun.set]))
    monkeypatch.setattr(precompile, "usable_cpus", lambda: 2)
    with where_nothing_is_cached(program_of(lambda x: x + 1, np.ones(3)), "all"):
        assert was_kept or begun.wait(5)
    assert begun.is_set() != was_kept


_FORKED = """
import os, threading
import numpy as np
import dy2st as paddle

@paddle.jit.to_static
def f(x):
    while x.sum() < 100:
        x = x * 2
    return x

x = paddle.to_tensor(np.ones(20, "float32"))
ends = []
def fork():
    child = os.fork()
    if not child:
        f(x)
        os._exit(0)
    ends.append(os.waitpid(child, 0)[1])
forks = threading.Thread(target=lambda: [fork() for _ in range(4)])
forks.start()
f(x)
forks.join()
print(ends, float(f(x).sum()))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads")
def test_a_fork_while_things_are_made_beside(tmp_path):
    environment = {**os.environ, "DY2ST_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, "-c", _FORKED], env=environment, capture_output=True, text=True, timeout=100, check=True
    )
    assert run.stdout.split() == ["[0,", "0,", "0,", "0]", "160.0"]
