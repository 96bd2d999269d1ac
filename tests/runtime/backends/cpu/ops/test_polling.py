"""Long native loops let Python look in: signals end them, other threads go on."""

import _thread
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import CallbackRun
from tests.in_threads import in_threads
from tests.runtime.backends.cpu.test_same_as_interpreter import program_of


def turns_of_numbers(n):
    i = 0
    while i < n:
        i = i + 2 if i % 2 else i + 1
    return i


def turns_of_tensors(n):
    x, i = paddle.zeros([40]), 0
    while i < n:
        x = paddle.tanh(x + 1)
        i += 1
    return x


def counted(n):
    total = paddle.zeros([])
    for i in range(n):
        total = total + i
    return total


def turns_without_the_lock(n):
    x, i = paddle.zeros([300, 300]), 0
    while i < n:
        x = paddle.tanh(paddle.sin(x + 1))
        i += 1
    return x


FUNCTIONS = [turns_of_numbers, turns_of_tensors, counted, turns_without_the_lock]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_signal_ends_a_loop(f):
    native = NativePlan(program_of(f, np.array(5)))
    waiting = threading.Timer(0.05, _thread.interrupt_main, [signal.SIGINT])
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        native.run([np.array(2**62)])
    waiting.join()
    assert native.run([np.array(5)])[0] is not None


def test_a_signal_ends_a_loop_of_few_turns_that_take_long():
    def f(x, n):
        for _ in range(n):
            x = paddle.sort(x[::-1] @ x, axis=-1) * 1e-3
        return x

    x = np.random.default_rng(0).normal(size=(500, 500)).astype("float32")
    native = NativePlan(program_of(f, x, np.array(5)))
    waiting = threading.Timer(0.05, _thread.interrupt_main, [signal.SIGINT])
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        native.run([x, np.array(200)])
    waiting.join()


def test_an_error_from_outside_before_the_first_line_of_a_call_into_python_arrives(monkeypatch):
    def f(x):
        print(x)
        return x * 2

    def raising(*_):
        raise TimeoutError("over time")

    x = np.ones(3)
    program = program_of(f, x)
    with monkeypatch.context() as patched:
        patched.setattr(CallbackRun, "call", raising)
        with pytest.raises(TimeoutError, match="over time"):
            NativePlan(program).run([x])
    assert np.array_equal(NativePlan(program).run([x])[0], x * 2)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_other_threads_go_on_beside_a_loop(f):
    native, seen, started = NativePlan(program_of(f, np.array(5))), [], threading.Event()

    def look():
        started.wait()
        while len(seen) < 4:
            seen.append(time.perf_counter())
            time.sleep(0.001)
        _thread.interrupt_main(signal.SIGINT)

    def run():
        started.set()
        native.run([np.array(2**62)])

    thread = threading.Thread(target=look)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run()
    thread.join()
    assert len(seen) == 4


def test_two_threads_take_turns_in_the_same_code():
    native = NativePlan(program_of(turns_of_numbers, np.array(5)))
    wanted, made = native.run([np.array(9)]), [[], []]

    def work(k):
        made[k] = native.run([np.array(5 * 10**7 + k)])

    in_threads(*(partial(work, k) for k in range(2)))
    assert [int(x[0]) for x in made] == [5 * 10**7 + 1] * 2
    assert native.run([np.array(9)]) == wanted
