"""Memory of large results: used again once it was given back, never while somebody holds it."""

import gc
import sys
from functools import partial

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.allocator import large_pages
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.python_abi import prefault
from tests.in_threads import in_threads


@pytest.fixture(scope="module")
def doubled():
    return NativePlan(
        parse("""program main
func main(%x: float32[N]) {
  %0: float32[N] = add(%x, %x)
  return %0
}
""")
    )


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("size", [300_000, 3_000_000])
def test_memory_that_was_given_back_is_used_for_the_next_result_of_its_size(doubled, size):
    x = np.ones(size, "float32")
    gc.collect()
    found = [address(doubled.run([x])[0]) for _ in range(20)]
    assert len({*found}) <= 4  # what tests before have given back may be taken first


@pytest.mark.parametrize("size", [300_000, 1_100_000])
def test_no_result_stands_in_the_memory_of_another_that_is_held(doubled, size):
    held = [doubled.run([np.full(size + i % 3, i, "float32")])[0] for i in range(18)]
    assert len({address(array) for array in held}) == len(held)
    assert all((array == 2 * i).all() for i, array in enumerate(held))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts blocks on large pages")
def test_sizes_that_nobody_asks_for_any_more_make_room(doubled):
    for size in range(1_100_000, 1_120_000, 1000):
        doubled.run([np.ones(size, "float32")])
    x = np.ones(1_200_000, "float32")
    for _ in range(2 * large_pages._ONE_OF):
        doubled.run([x])
    before = prefault._taken()[1]
    for _ in range(5):
        doubled.run([x])
    assert prefault._taken()[1] == before


def test_views_hold_the_memory(doubled):
    view = doubled.run([np.ones(300_000, "float32")])[0][5:10]
    others = [doubled.run([np.zeros(300_000, "float32")])[0] for _ in range(3)]
    assert view.tolist() == [2.0] * 5
    assert all(not array.any() for array in others)


@pytest.mark.slow
def test_more_than_waits_is_given_back_to_the_system(doubled):
    x = np.ones(4_000_000, "float32")
    held = [doubled.run([x])[0] for _ in range(20)]
    del held
    assert (doubled.run([x])[0] == 2).all()


def test_threads_take_and_give_at_once(doubled):
    wrong = []

    def work(number):
        rng = np.random.default_rng(number)
        for _ in range(40):
            x = np.full(int(rng.integers(262_144, 262_160)), number, "float32")
            results = [doubled.run([x])[0] for _ in range(int(rng.integers(1, 4)))]
            wrong.extend(1 for array in results if not (array == 2 * number).all())

    in_threads(*(partial(work, i) for i in range(6)))
    assert wrong == []
