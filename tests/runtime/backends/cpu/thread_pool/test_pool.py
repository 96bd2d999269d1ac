"""The pool: work is done once whoever does it, from several Python threads, after forks, and when the process ends."""

import ctypes
import functools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_text, linked, load, made_object
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, gathered
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked
from dy2st.runtime.backends.cpu.thread_pool.pool import get_num_threads, set_num_threads
from tests.shares import examples

DEAR, CHEAP = 10**9, 1


@pytest.fixture(autouse=True)
def threads():
    before = get_num_threads()
    yield
    set_num_threads(before)


@functools.cache
def adding():
    """Return `run(x, a, n, cost, most)`, which adds a to the n numbers at x in parts."""
    body = LLVMFunction("body", [("ptr", "%x"), ("double", "%a"), *RANGE], linkage="internal")
    with body.loop("%to", start="%from") as i:
        place = body.offset("%x", i, "double")
        body.store("double", body.value(f"fadd double {body.load('double', place)}, %a"), place)
    body.ret()
    run = LLVMFunction("run", [("ptr", "%x"), ("double", "%a"), ("i64", "%n"), ("i64", "%cost"), ("i64", "%most")])
    part = forked(run, "body", [("ptr", "%x"), ("double", "%a")], "%n", "%cost", "%most")
    run.ret()
    text = gathered([Definition("body", body.text()), Definition("run", run.text(), (part,))])
    kinds = (ctypes.c_void_p, ctypes.c_double, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    code = compile_text(text)
    return code, ctypes.CFUNCTYPE(None, *kinds)(code.address("run"))


def add(x, a=1.0, cost=DEAR, most=256):
    adding()[1](x.ctypes.data, a, x.size, cost, most)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("cost", [DEAR, CHEAP, 0])
def test_each_unit_is_done_once(count, cost):
    set_num_threads(count)
    for size in (0, 1, 2, 3, 15, 16, 17, 1000, 12345):
        x = np.zeros(size)
        for _ in range(5):
            add(x, cost=cost)
        assert (x == 5).all()


@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_more_threads_than_asked_for(most):
    set_num_threads(4)
    x = np.zeros(1000)
    add(x, most=most)
    assert (x == 1).all()


def test_the_number_of_threads_may_change_between_jobs():
    x = np.zeros(1000)
    for count in (1, 4, 2, 3, 1, 2):
        set_num_threads(count)
        assert get_num_threads() == count
        add(x)
    assert (x == 6).all()


def test_python_threads_that_come_at_once(rng):
    set_num_threads(3)
    wrong = []

    def work():
        x = np.zeros(300)
        for _ in range(1000):
            add(x)
        if not (x == 1000).all():
            wrong.append(x)

    def change():
        for count in (2, 3, 4, 3) * 5:
            set_num_threads(count)

    threads = [threading.Thread(target=work) for _ in range(8)] + [threading.Thread(target=change)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _forks(count):
    set_num_threads(3)
    x = np.zeros(1000)
    for _ in range(count):
        add(x)
        child = os.fork()
        if child == 0:
            y = np.zeros(1000)
            add(y)
            os._exit(0 if (y == 1).all() else 1)
        add(x)
        assert os.waitpid(child, 0)[1] == 0
    assert (x == 2 * count).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_workers_of_its_own():
    _forks(examples(10))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_many_forks():
    _forks(200)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_while_code_is_loaded_loads_code_too():
    made = linked([made_object("define i64 @number() {\n  ret i64 7\n}", current_target())])
    stop, codes = threading.Event(), []

    def work():
        for _ in range(5000):  # what is loaded stays
            if stop.is_set():
                return
            load(made)

    thread = threading.Thread(target=work)
    thread.start()
    forks = examples(20)
    for _ in range(forks):
        child = os.fork()
        if child == 0:
            number = ctypes.CFUNCTYPE(ctypes.c_int64)(load(made).address("number"))()
            os._exit(number)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop.set()
    thread.join()
    assert codes == [7] * forks


def test_workers_that_have_nothing_to_do_sleep():
    set_num_threads(4)
    add(np.zeros(1000))
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.03


PROGRAM = """
import sys
sys.path.insert(0, {here!r})
import test_pool, numpy, threading, time
test_pool.set_num_threads(3)
x = numpy.zeros(1000)
test_pool.add(x)
if {busy}:
    def work():
        while True:
            test_pool.add(numpy.zeros(100000))
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.05)
print(int(x.sum()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
def test_the_process_ends_quietly(busy):
    here = os.path.dirname(__file__)
    run = [sys.executable, "-c", PROGRAM.format(here=here, busy=busy)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")


ENDLESS = """
import threading, time
import numpy as np
import dy2st as paddle

def shared(x, n):
    for _ in range(n):
        x = paddle.exp(-x * x)
    return x

def alone(x, n):
    while n > 0:
        x = paddle.tanh(x) + n
    return x

paddle.set_num_threads(2)
for f, x in ((shared, np.ones((1000, 1000), "float32")), (shared, np.ones((1000, 1000))), (alone, np.ones(3))):
    static, x = paddle.jit.to_static(f, full_graph=True), paddle.to_tensor(x)
    static(x, paddle.to_tensor(0))
    threading.Thread(target=static, args=(x, paddle.to_tensor(10**9)), daemon=True).start()
time.sleep(0.3)
print("leaving")
"""


@pytest.mark.slow
def test_the_process_ends_quietly_while_threads_run_loops_without_end(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_the_number_of_threads_is_checked():
    with pytest.raises(TypeError, match="num_threads is an int, not float"):
        set_num_threads(2.0)  # type: ignore[arg-type]  what is tested
    with pytest.raises(TypeError, match="num_threads is an int, not bool"):
        set_num_threads(True)
    with pytest.raises(ValueError, match="num_threads is at least 1, not 0"):
        set_num_threads(0)
