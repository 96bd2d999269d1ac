"""The stand-in for a device refuses what a device refuses, and `set_device` takes it."""

import copy
import subprocess
import sys

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.errors import AutodiffError
from dy2st.runtime.backends.cuda.emulation import namespace as xp
from dy2st.runtime.backends.cuda.emulation.memory import LIVE, STATISTICS
from tests.conftest import missing_for_gpu


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setenv("DY2ST_CUDA", "emulated")
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    paddle.set_device("gpu")
    yield
    paddle.set_device("cpu")


def test_nothing_goes_to_the_host_unasked():
    x = xp.ones(3)
    for implicit in (np.asarray, np.array, lambda x: np.add(x, np.ones(3)), lambda x: x + np.ones(3), np.ones(3).dot):
        with pytest.raises(TypeError, match=r"Implicit conversion to a NumPy array|Unsupported type"):
            implicit(x)
    with pytest.raises(TypeError, match="Unsupported type"):
        x[:] = np.ones(3)


def test_operands_of_two_devices_are_refused_in_either_order(gpu):
    x, y = paddle.ones([3]), paddle.to_tensor([1.0, 2.0, 3.0], place=paddle.CPUPlace())
    for a, b in ((x, y), (y, x)):
        with pytest.raises(ValueError, match="operands are on different devices; move them to one with"):
            a + b


def test_what_the_host_asks_for_is_counted():
    x, before = xp.arange(3.0), STATISTICS.host_reads
    assert x.sum() == 3
    assert float(x[1]) == 1.0
    assert x.get().tolist() == [0.0, 1.0, 2.0]
    assert STATISTICS.host_reads == before + 3
    assert isinstance(np.exp(x), xp.ndarray)
    assert STATISTICS.host_reads == before + 3


def test_views_share_memory_and_results_do_not():
    x = xp.arange(12.0).reshape(3, 4)
    part = x.T[1:]
    assert part.data.mem is x.data.mem
    assert (x + 1).data.mem is not x.data.mem
    part[...] = 0.0
    assert x.sum() == 0 + 4 + 8
    assert x.__cuda_array_interface__["data"] == (x.data.ptr, False)


def test_memory_is_given_back():
    x = xp.ones(1000)
    address = x.data.ptr
    assert LIVE.find(address) is x.data.mem
    del x
    assert LIVE.find(address) is None


@pytest.mark.parametrize("argument", [np.ones(3), 1.5, None])
def test_a_kernel_takes_no_memory_of_the_host(argument):
    with pytest.raises(TypeError, match="Unsupported type"):
        xp.cuda.function.Function(0, None)((1,), (32,), (argument,))


_OUTSIDE = """
import ctypes, os
from dy2st.runtime.backends.cuda.emulation import namespace as xp

def read(count, offset, free):
    x = xp.ones(count)
    address = x.data.ptr
    if free:
        del x
    return ctypes.c_double.from_address(address + offset).value

for case in ((512, 511 * 8, False), (512, 512 * 8, False), (3, 32, False), (512, 0, True)):
    child = os.fork()
    if not child:
        read(*case)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_what_is_outside_of_memory_cannot_be_read():
    run = subprocess.run([sys.executable, "-c", _OUTSIDE], capture_output=True, text=True, check=True)
    inside, *outside = map(int, run.stdout.split())
    assert inside == 0
    assert [code < 0 for code in outside] == [True, True, True]


def test_there_is_one_device(gpu):
    assert paddle.is_compiled_with_cuda()
    assert paddle.get_device() == "gpu:0"
    with pytest.raises(RuntimeError, match="there is no CUDA device 1; this machine has 1"):
        paddle.set_device("gpu:1")


def test_an_unknown_word_is_refused(monkeypatch):
    monkeypatch.setenv("DY2ST_CUDA", "yes")
    with pytest.raises(ValueError, match="DY2ST_CUDA is 'emulated' or not set, not 'yes'"):
        paddle.set_device("gpu")


def test_a_model_trains_on_the_device_as_on_the_cpu(gpu, rng):
    x, y = rng.normal(size=(16, 8)).astype("float32"), rng.integers(0, 4, size=(16, 1))

    def losses(device):
        paddle.set_device(device)
        paddle.seed(1)
        model = paddle.nn.Sequential(paddle.nn.Linear(8, 32), paddle.nn.LayerNorm(32), paddle.nn.Linear(32, 4))
        adam = paddle.optimizer.Adam(parameters=model.parameters(), learning_rate=0.05)
        forward = paddle.jit.to_static(lambda x, y: F.cross_entropy(model(x), y))
        found = []
        for _ in range(5):
            loss = forward(paddle.to_tensor(x), paddle.to_tensor(y))
            loss.backward()
            adam.step()
            adam.clear_grad()
            found.append(loss.item())
        assert loss.place.is_gpu_place() is (device == "gpu")
        return found

    np.testing.assert_allclose(losses("gpu"), losses("cpu"), rtol=1e-5)


def test_elements_that_a_gradient_needs_cannot_be_overwritten(gpu):
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    z = (w * 2.0).exp()
    u = z + 1.0
    with paddle.no_grad():
        z.add_(1.0)
    with pytest.raises(AutodiffError, match="result 0 of 'exp' was changed in place"):
        u.sum().backward()


def test_a_program_reads_what_state_has_on_the_host(gpu):
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    descent = paddle.optimizer.SGD(parameters=[w], learning_rate=0.5)

    @paddle.jit.to_static
    def step():
        (w * w).sum().backward()
        descent.step()
        descent.clear_grad()

    step()
    descent.set_lr(0.25)
    step()
    assert w.tolist() == [0.0, 0.0]
    (w * 3).sum().backward()
    assert w.grad.place.is_gpu_place()


def test_explain_says_what_ran(gpu, rng):
    @paddle.jit.to_static
    def f(x):
        while x.sum() < 10:
            x = paddle.matmul(x, x) + 1
        return x

    f(paddle.ones([2, 2]))
    told = str(f.explain())
    assert "CuPy for matmul; the host reads for while_loop" in told
    assert "groups of operations in" in told


def test_the_tape_stays_on_the_device_however_often_it_is_walked(gpu):
    for _ in range(4):
        w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        ((w * w).reshape([2, 1]) + 1.0).sum().backward()
        assert w.grad.place.is_gpu_place()
        assert w.grad.tolist() == [2.0, 4.0]


def test_lists_and_what_may_be_missing_leave_a_program_on_the_device(gpu):
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        found, last = [], None
        while x.sum() < 20:
            x = x * 2
            found.append(x)
            if x.max() > 8:
                last = x * 3
        return found, last

    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    found, last = f(x)
    (found[0].sum() + found[1].sum() + last.sum()).backward()
    assert [t.place.is_gpu_place() for t in (*found, last, x.grad)] == [True] * (len(found) + 2)
    assert x.grad.tolist() == [30.0, 30.0]


def test_repeated_elements_leave_a_program_as_a_copy(gpu):
    made = paddle.jit.to_static(lambda x: paddle.broadcast_to(x, [3, 2]))(paddle.zeros([2]))
    made[0, 0] = 1.0
    assert made.tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_a_deep_copy_has_memory_of_its_own(gpu):
    net = paddle.nn.Linear(2, 2)
    other = copy.deepcopy(net)
    assert other.weight.payload.data.ptr != net.weight.payload.data.ptr
    assert other.weight.tolist() == net.weight.tolist()


def test_a_summary_and_a_norm_of_nothing_are_made_on_the_device(gpu, capsys):
    assert paddle.summary(paddle.nn.Linear(3, 2), (1, 3))["total_params"] == 8
    assert paddle.nn.utils.clip_grad_norm_([paddle.ones([2])], 1.0).place.is_gpu_place()


@pytest.mark.skipif(not missing_for_gpu(), reason="nothing is missing here")
def test_tests_on_a_card_say_what_is_missing():
    command = [sys.executable, "-m", "pytest", "--gpu", "tests/test_paths.py"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--gpu: {missing_for_gpu()}" in run.stderr
