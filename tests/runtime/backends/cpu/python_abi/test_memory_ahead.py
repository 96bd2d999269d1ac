"""Memory of first calls, brought in while they are traced: a guess from an earlier process, never a demand."""

import contextlib
import ctypes
import marshal
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.dispatch import concrete_program
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.backends.cpu.python_abi import helpers, prefault
from dy2st.runtime.backends.cpu.python_abi.prefault import ExpectedMemory, expected

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux brings memory in when it is asked to"),
]
MIB = 1 << 20


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    monkeypatch.setattr(prefault, "usable_cpus", lambda: 2)


@pytest.fixture
def asked(monkeypatch):
    """What threads are asked to bring in."""
    found = []
    bring_in = prefault._bring_in
    monkeypatch.setattr(prefault, "_bring_in", lambda *need: (found.append(need[0]), bring_in(*need)))
    return found


def several(x):
    kept, i = [], 0
    while i < 40:
        x = x * 1.5
        kept.append(x)
        i += 1
    return paddle.stack(kept)


def test_the_next_process_asks_for_what_the_first_calls_took(asked):
    x = paddle.to_tensor(np.ones((64, 1024), "float32"))
    first = paddle.jit.to_static(several)
    for _ in range(2):
        first(x)
    assert not asked
    again = paddle.jit.to_static(several)(x)  # a later process traces anew as this does
    np.testing.assert_allclose(again.numpy(), several(x).numpy(), rtol=1e-5)
    ((small, large),) = asked
    assert 40 * 64 * 1024 * 4 < small + sum(large) < 3 * 40 * 64 * 1024 * 4


def test_other_extents_have_a_need_of_their_own(asked):
    first = paddle.jit.to_static(several)
    for _ in range(2):
        first(paddle.to_tensor(np.ones((64, 1024), "float32")))
    paddle.jit.to_static(several)(paddle.to_tensor(np.ones((2, 8), "float32")))
    assert not asked


def _is_there(address: int, size: int) -> bool:
    """Say whether the system has given all of this memory."""
    page = mmap.PAGESIZE
    begin, end = -(-address // page) * page, (address + size) // page * page
    found = (ctypes.c_ubyte * ((end - begin) // page))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), found) == 0
    return all(byte & 1 for byte in found)


def _soon(holds) -> bool:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def bring_blocks_in() -> None:
    """Ask for blocks, and see that they are there when they are taken."""
    new = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(helpers.address("new"))
    size = 5 * MIB + 192
    prefault._bring_in((6 * MIB, [size, size]))
    held = []

    def waits() -> bool:
        before = prefault._taken()[1]
        held.append(new(64, size))
        return prefault._taken()[1] == before  # nothing new was made for it

    assert _soon(waits)
    assert _soon(lambda: _is_there(held[-1], size))
    small = [new(64, 300_032) for _ in range(10)]
    assert _soon(lambda: all(_is_there(block, 300_032) for block in small))
    for block in (*held, *small):
        helpers.freer()(block)


def test_blocks_that_were_asked_for_are_there():
    """In a process of its own, where no blocks of other tests wait."""
    code = "from tests.runtime.backends.cpu.python_abi.test_memory_ahead import bring_blocks_in; bring_blocks_in()"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def bring_arrays_in() -> None:
    """Ask for arrays while other memory is brought in, and again when that is done; their zeros stay zeros."""
    for _ in range(2):
        arrays = [np.zeros(size, np.uint8) for size in (3 * MIB, 100_000, 700_000, 40 * MIB)]
        prefault._bring_in((6 * MIB, []))
        prefault.prefault(arrays)
        assert _soon(lambda: all(_is_there(array.ctypes.data, array.nbytes) for array in arrays))
        assert not any(array.any() for array in arrays)


def test_arrays_that_were_asked_for_are_there():
    code = "from tests.runtime.backends.cpu.python_abi.test_memory_ahead import bring_arrays_in; bring_arrays_in()"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_arrays_that_are_gone_are_nobodys():
    helpers.address("new")
    for _ in range(20):
        prefault.prefault([np.zeros(4 * MIB, np.uint8)])  # given back at once


def _training():
    layer = paddle.nn.Linear(512, 512)
    optimizer = paddle.optimizer.Adam(parameters=layer.parameters())

    @paddle.jit.to_static
    def step(x):
        loss = (layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss

    return layer, step


def test_moments_are_brought_in_once(monkeypatch):
    asked = []
    monkeypatch.setattr(prefault, "prefault", lambda arrays: asked.append(sum(a.nbytes for a in arrays)))
    _, step = _training()
    x = paddle.to_tensor(np.ones((2, 512), "float32"))
    step(x)
    step(paddle.to_tensor(np.ones((2, 512), "float32"), stop_gradient=False))  # traced again
    two_moments = 2 * (512 * 512 + 512) * 4
    assert two_moments <= asked[0] < two_moments + 200  # and two numbers a parameter
    assert sum(asked[1:]) == 0


def test_a_step_needs_no_copies_of_parameters(monkeypatch):
    copied = []
    monkeypatch.setattr(concrete_program, "copy_of", copied.append)
    layer, step = _training()
    before = layer.weight.numpy().copy()
    step(paddle.to_tensor(np.ones((2, 512), "float32")))
    assert (layer.weight.numpy() != before).any()
    assert not copied


@pytest.mark.parametrize("content", [b"", b"nonsense", marshal.dumps((1, 2, 3)), marshal.dumps((-5 * MIB, [])),
                                     marshal.dumps((5 * MIB, [-1])), marshal.dumps((1 << 40, [])),
                                     marshal.dumps((0, [5 * MIB] * 17)), marshal.dumps(("much", []))])  # fmt: skip
def test_what_somebody_else_has_written_asks_for_nothing(content, asked):
    found = expected(several, ())
    disk_cache.write(found.key, content)
    assert expected(several, ()).need == (0, [])
    assert not asked


def test_a_need_is_kept_where_it_has_changed():
    found = expected(several, ())
    ExpectedMemory(found.key, (0, []), [found.before[0] - 3 * MIB, *found.before[1:]]).is_settled()
    small, large = expected(several, ()).need
    assert (small, large) == (3 * MIB, [])
    before = disk_cache.read(found.key)
    ExpectedMemory(found.key, (small, large), [found.before[0] - 3 * MIB - 4096, *found.before[1:]]).is_settled()
    assert disk_cache.read(found.key) == before  # it is much like what is kept


def test_a_first_call_that_took_nothing_leaves_the_second_to_be_looked_at():
    found = expected(several, ())
    assert not found.is_settled()
    assert found.is_settled()
    assert disk_cache.read(found.key) is None


def test_with_one_cpu_nothing_is_asked_for(monkeypatch, asked):
    found = expected(several, ())
    disk_cache.write(found.key, marshal.dumps((5 * MIB, [])))
    monkeypatch.setattr(prefault, "usable_cpus", lambda: 1)
    assert expected(several, ()).need == (5 * MIB, [])
    assert not asked


@pytest.mark.parametrize(
    ("name", "value"), [("DY2ST_GUARD", "1"), ("DY2ST_CACHE_DIR", ""), ("DY2ST_BACKEND", "interpreter")]
)
def test_guarded_blocks_and_processes_that_keep_nothing_have_no_memory_ahead(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    assert expected(several, ()) is None


def test_the_signals_of_this_thread_are_as_they_were():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        prefault._bring_in((2 * MIB, []))
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before | {signal.SIGUSR1}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_this_thread() -> None:
    """Send signals to the process while memory is brought in: the thread beside, which knows no Python, gets none."""
    prefault._bring_in((64 * MIB, [40 * MIB] * 3))
    for task in set(os.listdir("/proc/self/task")) - {str(os.getpid())}:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            lines = Path(f"/proc/self/task/{task}/status").read_text().splitlines()
            (blocked,) = (int(line.split()[1], 16) for line in lines if line.startswith("SigBlk"))
            if not blocked >> signal.SIGTERM - 1 & 1:
                print(task, hex(blocked))


def test_the_thread_beside_gets_no_signals():
    code = "from tests.runtime.backends.cpu.python_abi.test_memory_ahead import leave_signals_to_this_thread as f; f()"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


_FORKING = """
import os
from dy2st.runtime.backends.cpu.python_abi import prefault as memory_ahead
for _ in range(5):
    memory_ahead._bring_in((20 << 20, [8 << 20]))
    child = os.fork()
    if child == 0:
        memory_ahead._bring_in((1 << 20, [4 << 20]))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
memory_ahead._bring_in((64 << 20, []))
"""


def test_forks_and_ends_of_processes_do_not_wait_for_it():
    command = [sys.executable, "-W", "ignore", "-c", _FORKING]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
