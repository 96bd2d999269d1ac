"""Blocks of middle size: cut from one range of addresses, used again by their size, never given out twice."""

import ctypes
import itertools
import subprocess
import sys
from functools import partial

import pytest

from dy2st.runtime.backends.cpu.python_abi import helpers
from tests.in_threads import in_threads

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has large pages on demand")


@pytest.fixture
def blocks():
    """Functions that take a block and give it back."""
    new = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(helpers.address("new"))
    return (lambda size: new(64, size)), helpers.freer()


def _opened(take, give) -> int:
    """Ask for blocks until one comes from the reserve; return its address."""
    held = [take(1 << 16) for _ in range(2 + (1 << 22) // (1 << 16))]
    for block in held:
        give(block)
    return held[-1]


def _apart(held: list[tuple[int, int]]) -> bool:
    held = sorted(held)
    return all(a + size <= b for (a, size), (b, _) in itertools.pairwise(held))


@LINUX
def test_a_block_that_was_given_back_is_the_next_of_its_size(blocks):
    take, give = blocks
    _opened(take, give)
    block = take(50_048)
    give(block)
    assert take(50_048) == block
    give(block)


def test_blocks_are_aligned_and_apart(blocks):
    take, give = blocks
    _opened(take, give)
    sizes = [64 * n for n in (1, 63, 64, 65, 200, 1000, 5000, 16_384, 20_000, 70_000)] * 3
    held = [(take(size), size) for size in sizes]
    assert all(block % 64 == 0 for block, _ in held)
    assert _apart(held)
    for block, size in held:
        ctypes.memset(block + 64, 255, size - 64)
    for block, _ in held:
        give(block)


def test_threads_never_hold_the_same_block(blocks):
    take, give = blocks
    _opened(take, give)
    wrong = []

    def work(mark: int) -> None:
        for turn in range(300):
            size = 4096 * (1 + turn % 3)
            held = [take(size) for _ in range(4)]
            for block in held:
                ctypes.memset(block + 64, mark, size - 64)
            for block in held:
                if ctypes.string_at(block + 64, size - 64) != bytes([mark]) * (size - 64):
                    wrong.append(block)
                give(block)

    in_threads(*(partial(work, mark) for mark in range(1, 5)))
    assert not wrong


_FULL = """
import ctypes
from dy2st.runtime.backends.cpu.python_abi import helpers as support
new = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(support.address("new"))
give, size = support.freer(), 4_000_000
held = [new(64, size) for _ in range(80)]
assert all(held) and len(set(held)) == 80
places = sorted(held)
assert all(b - a >= size for a, b in zip(places, places[1:]))
for block in held:
    give(block)
assert new(64, size) in held
"""


def test_a_full_reserve_leaves_blocks_to_the_c_library():
    done = subprocess.run([sys.executable, "-c", _FULL], timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


_NO_ROOM = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (int(open("/proc/self/statm").read().split()[0]) * 4096 + (200 << 20),) * 2)
import ctypes
from dy2st.runtime.backends.cpu.python_abi import helpers as support
new = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(support.address("new"))
give = support.freer()
held = [new(64, 1 << 16) for _ in range(200)]
assert all(held) and len(set(held)) == 200
for block in held:
    give(block)
"""


@LINUX
def test_where_there_are_too_few_addresses_there_is_no_reserve():
    done = subprocess.run([sys.executable, "-c", _NO_ROOM], timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
