"""Forks while other threads hold locks: the new process is never left waiting for a thread that it does not have."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import forks
from dy2st.forks import ForkLock, Gate, Locked, handlers_wait
from tests.shares import examples

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def in_child(function: Callable[[], bool]) -> bool:
    """Say what a function gives in a forked process, False where that takes 20 s."""
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(17 if function() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


def forked() -> None:
    """Fork, and stay here a while."""
    if not os.fork():
        os._exit(0)
    time.sleep(5)


def beside(lock: Any, until: threading.Event) -> threading.Thread:
    """Hold a lock on another thread until something happens."""
    held = threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            until.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    return thread


@pytest.mark.parametrize("make", [ForkLock, Gate])
def test_a_fork_waits_for_who_is_behind(make: Any) -> None:
    lock, go = make(level=9), threading.Event()
    thread = beside(lock, go)
    threading.Timer(0.05, go.set).start()

    def enters() -> bool:
        with lock:
            return go.is_set()

    assert in_child(enters)
    thread.join(10)
    assert enters()


def test_a_signal_that_comes_while_a_fork_waits_arrives_after_it() -> None:
    def handle(*_: Any) -> None:
        raise TimeoutError("over time")

    lock, go = ForkLock(level=9), threading.Event()
    thread = beside(lock, go)
    before = signal.signal(signal.SIGALRM, handle)
    try:
        threading.Timer(0.1, go.set).start()
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(TimeoutError, match="over time"):
            forked()
        assert signal.getsignal(signal.SIGALRM) is handle
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.wait()
    go.clear()
    beside(lock, go)  # it is open to others
    go.set()
    thread.join(10)


def test_handlers_wait_for_the_end_of_a_with() -> None:
    done: list[str] = []

    def handle(*_: Any) -> None:
        done.append("handled")
        raise TimeoutError("over time")

    def work() -> None:
        with handlers_wait(), handlers_wait():
            signal.raise_signal(signal.SIGALRM)
            assert in_child(lambda: True)
            done.append("went on")

    before = signal.signal(signal.SIGALRM, handle)
    try:
        with pytest.raises(TimeoutError, match="over time"):
            work()
        assert (done, signal.getsignal(signal.SIGALRM)) == (["went on", "handled"], handle)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_two_locks_are_taken_in_the_order_of_their_levels() -> None:
    outer, ends = ForkLock(level=7), threading.Event()
    inner = ForkLock(level=8)

    def work() -> None:
        while not ends.is_set():
            with outer, inner:
                pass

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert all(in_child(lambda: True) for _ in range(examples(20)))
    finally:
        ends.set()
        thread.join(10)


def test_an_object_has_a_new_lock_in_the_new_process() -> None:
    owner, go = Locked(), threading.Event()
    thread = beside(owner._lock, go)

    def enters() -> bool:
        with owner._lock:
            return True

    try:
        assert in_child(enters)
    finally:
        go.set()
        thread.join(10)


def test_objects_that_are_gone_are_forgotten() -> None:
    kept = [Locked() for _ in range(10)]
    for _ in range(1000):
        Locked()
    assert len(forks._owners) < 2 * len([one for one in forks._owners.values() if one() is not None]) + 70
    assert all(any(one() is owner for one in forks._owners.values()) for owner in kept)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "auto"])
def test_forks_while_threads_trace_and_make_code(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", backend)
    x, ends = paddle.to_tensor(np.ones(8, "float32")), threading.Event()

    def use(number: int) -> float:
        def f(x):
            while x.sum() < number % 7:
                x = x * 1.5 + number
            return paddle.tanh(x).sum()

        static = paddle.jit.to_static(f)
        return [float(static(x)) for _ in range(3)][-1]

    def work() -> None:
        number = 0
        while not ends.is_set():
            number += 1
            use(number)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert all(in_child(lambda: np.isfinite(use(5_000))) for _ in range(4))
    finally:
        ends.set()
        thread.join(30)


def test_owners_made_while_dead_ones_are_looked_for(monkeypatch):
    """The collector of garbage may run at every item that is looked at, and let any code run."""
    monkeypatch.setattr(forks._Size, "looked_at", forks._Size.looked_at)
    first, made = [Locked() for _ in range(200)], []
    pairs = [(i, i) for i in range(5_000)]  # none that Python would use again without asking the collector
    threshold = gc.get_threshold()
    note = lambda phase, info: made.append(Locked())
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        forks._forget_dead()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(note)
    assert made
    assert pairs
    known = {owner() for owner in forks._owners.values()}
    assert known.issuperset([*first, *made])
