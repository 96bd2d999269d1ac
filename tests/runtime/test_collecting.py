"""The collector works rarely while Programs are made, and as before afterwards."""

import gc
import os
import subprocess
import sys
import threading

import pytest

from dy2st.runtime.collecting import RARE, rarely


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
from dy2st.runtime.collecting import rarely
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

from dy2st.runtime.collecting import kept
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
