"""What a machine may do to native code: a full disk, an end in the middle of a write, damaged files, no memory."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import program_of

SCRIPT = """
import numpy as np
import dy2st as paddle

@paddle.jit.to_static(full_graph=True)
def total(x, n):
    x.stop_gradient = False
    y = x
    while n > 0:
        y, n = paddle.tanh(y @ y) + 1, n - 1
    return paddle.grad(y.sum(), x)[0].sum() + y.sum()

x = paddle.to_tensor(np.eye(9, dtype="float32"))
{before}
found = [float(total(x, paddle.to_tensor(3))) for _ in range(3)]
assert found[0] == found[2], found
print("%.5f" % found[0])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    return tmp_path / "kept"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return the file that processes run."""
    return tmp_path_factory.mktemp("adversity") / "script.py"


@pytest.fixture
def script(place):
    """Return a function that runs a process and gives what it prints; it keeps no byte code, which could be cut off."""

    def run(before=""):
        place.write_text(SCRIPT.replace("{before}", before))
        done = subprocess.run([sys.executable, "-B", place], capture_output=True, text=True, timeout=100)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def undisturbed(place, folder, script, monkeypatch):
    """Return what a process prints that nothing befalls, and the folder of what it keeps."""
    kept, printed = place.parent / "kept", place.parent / "printed"
    if not printed.exists():
        with monkeypatch.context() as patch:
            patch.setenv("DY2ST_CACHE_DIR", str(kept))
            printed.write_text(script())
    return printed.read_text(), kept


# ---- disks ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="a process has no limit on the size of files here")
def test_a_full_disk_keeps_nothing_and_harms_nothing(folder, script, undisturbed):
    assert script("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))") == undisturbed[0]
    assert [f.name for f in folder.rglob("*") if f.is_file()] == []


@pytest.mark.slow
def test_a_file_in_the_place_of_the_folder_harms_nothing(folder, script, undisturbed):
    folder.write_bytes(b"a file")
    assert script() == undisturbed[0]
    assert folder.read_bytes() == b"a file"


def _truncated(data: bytes, others: list[bytes]) -> bytes:
    return data[: len(data) // 2]


def _emptied(data: bytes, others: list[bytes]) -> bytes:
    return b""


def _flipped(data: bytes, others: list[bytes]) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _swapped(data: bytes, others: list[bytes]) -> bytes:
    return random.choice([other for other in others if other != data])


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_flipped, _truncated, _emptied, _swapped])
def test_kept_files_of_every_kind_that_are_damaged_are_made_again(damage, folder, script, undisturbed):
    want, kept = undisturbed
    shutil.copytree(kept, folder)
    files = [f for f in folder.rglob("*") if f.is_file()]
    contents = [f.read_bytes() for f in files]
    assert len(files) > 4  # a conversion, Programs, code, functions of the library
    for file, data in zip(files, contents, strict=True):
        file.write_bytes(damage(data, contents))
    assert script() == want


# ---- ends ----------------------------------------------------------------------------------------------------------
def _write_for_ever(seed: int) -> None:
    rng = random.Random(seed)
    while True:
        key = rng.choice("abcd")
        disk_cache.write(key, key.encode() * 300_000)
        disk_cache.read(rng.choice("abcd"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_a_process_that_is_killed_while_it_writes_leaves_whole_files(count, folder):
    rng = random.Random(count)
    for seed in range(count):
        child = os.fork()
        if not child:
            try:
                _write_for_ever(seed)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        for key in "abcd":
            assert disk_cache.read(key) in (None, key.encode() * 300_000)
    disk_cache.write("a", b"new")
    assert disk_cache.read("a") == b"new"


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_makes_code_harms_no_other(folder, place, script, undisturbed):
    want, rng = undisturbed[0], random.Random(0)
    for _ in range(4):
        shutil.rmtree(folder, ignore_errors=True)
        child = subprocess.Popen([sys.executable, place], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.1, 1.0))
        child.kill()
        child.wait(60)
        assert script() == want


# ---- processors ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process is bound to CPUs by Linux")
def test_more_threads_than_cpus_come_to_an_end(folder, script):
    bound = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    assert script(bound + "paddle.set_num_threads(6); x = paddle.ones([300, 300])") == script(
        "paddle.set_num_threads(1); x = paddle.ones([300, 300])"
    )


@pytest.mark.parametrize("calls", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_threads_that_change_the_number_of_threads_while_others_run(calls, rng):
    x = rng.normal(size=(700, 300)).astype("float32")
    native = NativePlan(program_of(lambda x: paddle.tanh(x).sum(axis=0), x))
    want, wrong, ends = native.run([x])[0], [], threading.Event()

    def run():
        for _ in range(calls):
            if not np.array_equal(native.run([x])[0], want):
                wrong.append(1)

    def change(count):
        while not ends.is_set():
            paddle.set_num_threads(count)
            time.sleep(0.0005)

    changing = [threading.Thread(target=change, args=(count,)) for count in (1, 2, 4)]
    running = [threading.Thread(target=run) for _ in range(4)]
    for thread in changing + running:
        thread.start()
    for thread in running:
        thread.join()
    ends.set()
    for thread in changing:
        thread.join()
    assert wrong == []


# ---- numbers and memory --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormal_numbers_are_not_zero_on_any_thread(dtype, rng):
    tiny = np.finfo(dtype).smallest_subnormal
    x = (rng.integers(1, 100, (600, 200)) * tiny).astype(dtype)

    def f(x):
        ones = paddle.ones([200, 3], x.dtype)
        return x * 2, x - x[::-1], x.sum(axis=0), x.sum(axis=1), x @ ones, paddle.maximum(x, x[0]), x.abs(), x / 0.5

    native = NativePlan(program_of(f, x))
    want = compile_plan(native.program).run([x])
    for _ in thread_counts(1, 4):
        for found, exact in zip(native.run([x]), want, strict=True):  # sums of so few bits are exact
            np.testing.assert_array_equal(found, exact)
            assert np.count_nonzero(found)


def test_what_does_not_fit_into_memory_is_a_memory_error():
    native = NativePlan(program_of(lambda n: paddle.zeros([n]) + 1, np.array(3)))
    with pytest.raises(MemoryError, match="Unable to allocate"):
        native.run([np.array(2**46)])
    np.testing.assert_array_equal(native.run([np.array(2)])[0], np.ones(2, "float32"))
