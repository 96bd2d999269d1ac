"""The collector works rarely while Programs are made, and as before afterwards."""

import gc
import linecache
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest

import dy2st as paddle
from dy2st.runtime.gc_pause import RARE, rarely, while_it_lives


@pytest.fixture(autouse=True)
def as_before():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_it_works_rarely_only_inside():
    with rarely():
        assert gc.get_threshold() == (RARE, 1000, 1000)
        with rarely():
            assert gc.get_threshold() == (RARE, 1000, 1000)
        assert gc.get_threshold() == (RARE, 1000, 1000)
    assert gc.get_threshold() == (700, 10, 10)


def test_it_is_as_before_after_an_error():
    with pytest.raises(ValueError, match="here"), rarely():
        raise ValueError("here")
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, RARE, 10 * RARE], ids=["switched off", "as rare", "rarer"])
def test_who_has_it_work_as_rarely_or_never_keeps_that(chosen):
    gc.set_threshold(chosen, 10, 10)
    with rarely():
        assert gc.get_threshold() == (chosen, 10, 10)
    assert gc.get_threshold() == (chosen, 10, 10)


def test_what_is_set_inside_stays():
    with rarely():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)


def test_threads_share_it():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with rarely():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with rarely():
        thread.start()
        inside.wait(10)
    assert gc.get_threshold()[0] == RARE
    leave.set()
    thread.join()
    assert gc.get_threshold()[0] == 700


def test_a_new_process_is_not_bound_by_threads_that_it_has_not():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with rarely():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.get_threshold()[0] == 700 else 1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


_MANY_OBJECTS = """
import gc
import linecache
from dy2st.runtime.gc_pause import rarely
passes = []
gc.callbacks.append(lambda phase, found: passes.append(found["generation"]) if phase == "start" else None)
with rarely():
    made = [[number] for number in range(50_000)]
again = [[number] for number in range(500)]
assert not passes, passes
for _ in range(30):  # more than may be taken for old
    with rarely():
        made += [[number] for number in range(50_000)]
    again = [[number] for number in range(1_000)]
assert passes, "garbage would never be found"
"""
"""In a process of its own, where no other pass happens."""


@pytest.mark.slow
def test_many_objects_are_taken_for_old_but_not_without_end():
    done = subprocess.run(
        [sys.executable, "-c", _MANY_OBJECTS], timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


_IMPORTS = """
import gc, numpy
before = gc.get_count()[2]
import dy2st
assert gc.get_count()[2] <= before + 1, gc.get_count()
assert any(vars(dy2st) is one for one in gc.get_objects(generation=2))

from dy2st.runtime.gc_pause import kept
gc.freeze()
frozen = gc.get_freeze_count()
with kept():
    made = [[number] for number in range(2000)]
assert gc.get_freeze_count() > frozen - 100
"""
"""In a process of its own: the tests' own keeps what they share frozen."""


def test_an_import_brings_no_full_pass_nearer_and_what_somebody_froze_stays_so():
    done = subprocess.run([sys.executable, "-c", _IMPORTS], timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_frozen_is_counted_once_between_two_full_passes(monkeypatch):
    asked, made = [], []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(1) or 10_000_000)
    for passes in (1, 2):
        gc.collect()
        for _ in range(3):
            with rarely():
                made += [[number] for number in range(20_000)]
        assert len(asked) == passes


def test_what_is_kept_of_a_class_is_kept_as_long_as_that_lives():
    asked = []

    @while_it_lives
    def name_of(kind):
        asked.append(kind.__name__)
        return kind.__name__

    held = type("held", (), {})
    for _ in range(3):
        for i in range(200):
            assert name_of(type(f"k{i}", (), {})) == f"k{i}"
        gc.collect()
        assert name_of(held) == "held"
    assert (asked.count("held"), len(asked)) == (1, 601)
    assert sum(len(cell.cell_contents) for cell in name_of.__closure__ if type(cell.cell_contents) is dict) < 500


def called_once() -> list[weakref.ref[Any]]:
    """Make a class with a static method and a function, call them, and return what should die with them."""

    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear, self.calls = paddle.nn.Linear(2, 2), 0

        @paddle.jit.to_static
        def forward(self, x):
            self.calls += 1
            return self.linear(x) if x.sum() > 0 else x * self.calls

    text, name, scope = "def g(x):\n    return x - 1 if x.sum() > 0 else x\n", "<made of a text>", dict[str, Any]()
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), scope)
    g = scope.pop("g")
    net, x = Net(), paddle.ones([2, 2])
    for _ in range(3):
        net(x).sum().backward()
        paddle.jit.to_static(g)(x)
    return [weakref.ref(x) for x in (Net, net, net.linear.weight, g)]


def test_classes_and_code_end_with_what_was_made_of_them():
    found = called_once()
    gc.collect()
    gc.collect()
    assert not [x() for x in found if x() is not None]
