"""Threads take turns often while code is made, and as often as before afterwards."""

import os
import sys

import pytest

from dy2st.runtime.backends.gil_switch_interval import OFTEN, often


@pytest.fixture(autouse=True)
def interval():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_the_last_one_to_leave_restores_the_interval():
    before = sys.getswitchinterval()
    with often():
        with often():
            assert sys.getswitchinterval() == pytest.approx(OFTEN)
        assert sys.getswitchinterval() == pytest.approx(OFTEN)
    assert sys.getswitchinterval() == pytest.approx(before)


def test_an_interval_that_is_shorter_is_left_as_it_is():
    sys.setswitchinterval(OFTEN / 2)
    with often():
        assert sys.getswitchinterval() == pytest.approx(OFTEN / 2)
    assert sys.getswitchinterval() == pytest.approx(OFTEN / 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_new_process_has_the_interval_of_before():
    before = sys.getswitchinterval()
    with often():
        child = os.fork()
        if not child:
            os._exit(0 if abs(sys.getswitchinterval() - before) < 1e-6 else 1)
    assert os.waitpid(child, 0)[1] == 0
