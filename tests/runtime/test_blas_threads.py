"""The first run of a Program, operation by operation, takes products on one thread; later NumPy has its own again."""

import os

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.executor.tiering import TieredProgram
from dy2st.runtime.interpreter import blas_threads
from dy2st.runtime.interpreter.blas_threads import one_blas_thread
from tests.runtime.programs import program_of


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """Stand in for OpenBLAS: how many threads it takes."""
    number = [4]
    functions = (lambda: number[0], lambda count: number.__setitem__(0, count))
    monkeypatch.setattr(blas_threads, "_functions", lambda: functions)
    return number


def test_the_last_one_to_leave_restores_the_threads(threads):
    with one_blas_thread():
        with one_blas_thread():
            assert threads == [1]
        assert threads == [1]
    assert threads == [4]


def test_an_error_restores_the_threads(threads):
    with pytest.raises(ValueError, match="not this"), one_blas_thread():
        raise ValueError("not this")
    assert threads == [4]


@pytest.mark.one_tier("looks at the run of the interpreter")
def test_only_the_run_before_native_code_takes_one_thread(threads, monkeypatch, tmp_path):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    seen, matmul, x = [], np.matmul, np.ones((4, 4), np.float32)
    runner = TieredProgram(program_of(paddle.matmul, x, x))
    monkeypatch.setattr(np, "matmul", lambda x, y: seen.append(threads[0]) or matmul(x, y))
    for _ in range(2):
        assert runner.run([x, x])[0][0, 0] == 4.0
    assert runner.native is not None
    assert (seen, threads) == ([1], [4])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_new_process_has_the_threads_of_before(threads):
    with one_blas_thread():
        child = os.fork()
        if not child:
            os._exit(threads[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4


def test_numpys_own_openblas_is_found(monkeypatch):
    monkeypatch.undo()
    found = blas_threads._functions()
    if found is None:
        pytest.skip("this NumPy has another library")
    before = found[0]()
    with one_blas_thread():
        assert found[0]() == 1
    assert found[0]() == before
