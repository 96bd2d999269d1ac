"""Devices: names, what is said where CUDA is missing, and on a machine that has it, the same results there."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import MissingExtraError
from dy2st.runtime.eager import device

MISSING = "running on a CUDA device needs the package 'cupy', which is not installed: pip install 'dy2st\\[cuda13\\]'"
ASKS = [
    lambda: paddle.set_device("gpu"), lambda: paddle.set_device("gpu:1"), lambda: paddle.CUDAPlace(0),
    lambda: paddle.ones([1]).cuda(), lambda: paddle.ones([1]).to("gpu"), lambda: paddle.ones([1]).to(device="cuda:0"),
    lambda: paddle.to_tensor([1.0], place="gpu"),
]  # fmt: skip


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def fake_cupy(count):
    """Stand for a CuPy that sees `count` devices, or raises what it is given."""

    def get_device_count():
        if isinstance(count, Exception):
            raise count
        return count

    return SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=get_device_count)))


@pytest.mark.parametrize("ask", ASKS)
def test_without_cupy_the_error_names_the_extra(no_cupy, ask):
    with pytest.raises(MissingExtraError, match=MISSING):
        ask()
    with pytest.raises(ImportError):
        ask()
    assert paddle.get_device() == "cpu"
    assert paddle.ones([1]).tolist() == [1.0]


def test_without_cupy_there_is_no_cuda(no_cupy):
    assert not paddle.is_compiled_with_cuda()


def test_without_a_driver_the_error_is_the_driver_s(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(OSError("cudaErrorNoDevice: no CUDA-capable device")))
    with pytest.raises(RuntimeError, match="no CUDA device can be used: cudaErrorNoDevice"):
        paddle.set_device("gpu")
    assert not paddle.is_compiled_with_cuda()
    assert paddle.get_device() == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(2))
    assert paddle.CUDAPlace(1) == device.Place("gpu", 1)
    with pytest.raises(RuntimeError, match="there is no CUDA device 2; this machine has 2"):
        paddle.set_device("gpu:2")
    assert paddle.get_device() == "cpu"


@pytest.mark.parametrize("name", ["tpu", "gpu:x", "gpu:-1", "cpu0", "", 3])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(ValueError, match="is not here; use 'cpu', 'gpu' or 'gpu:N'"):
        paddle.set_device(name)


@pytest.mark.proves("CPUPlace CUDAPlace")
def test_places_are_compared_by_value_and_print_as_paddle_s():
    assert paddle.CPUPlace() == device.CPU
    assert len({paddle.CPUPlace(), device.CPU, device.Place("gpu", 1)}) == 2
    assert repr(paddle.CPUPlace()) == "Place(cpu)"
    assert repr(device.Place("gpu", 1)) == "Place(gpu:1)"
    assert paddle.CPUPlace().is_cpu_place()
    assert device.Place("gpu", 1).is_gpu_place()
    assert device.Place("gpu", 1).get_device_id() == 1


def test_the_cpu_is_where_tensors_are():
    assert paddle.set_device("cpu") == device.CPU
    x = paddle.ones([2], "float64")
    assert x.place == paddle.CPUPlace()
    assert x.cpu() is x
    assert x.to("cpu", "float32").dtype == "float32"


@pytest.fixture
def on_gpu():
    before = paddle.get_device()
    paddle.set_device("gpu")
    yield
    paddle.set_device(before)


@pytest.mark.gpu
def test_a_move_keeps_elements_and_sends_the_gradient_back():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x.cuda()
    assert y.place == device.Place("gpu", 0)
    (y * y).sum().backward()
    assert x.grad.place == device.CPU
    assert x.grad.tolist() == [2.0, 4.0]
    assert y.cpu().tolist() == [1.0, 2.0]


@pytest.mark.gpu
def test_operands_on_two_devices_are_refused():
    with pytest.raises(ValueError, match="operands are on different devices; move them to one with"):
        paddle.ones([2]) + paddle.ones([2]).cuda()


@pytest.mark.gpu
@pytest.mark.parametrize("draw", [
    lambda: paddle.rand([64]), lambda: paddle.randint(0, 1000, [64]), lambda: paddle.bernoulli(paddle.full([64], 0.3)),
])  # fmt: skip
def test_random_bits_are_those_of_the_cpu(draw):
    paddle.seed(11)
    want = draw().numpy()
    paddle.set_device("gpu")
    try:
        paddle.seed(11)
        got = draw()
        assert got.place == device.Place("gpu", 0)
        np.testing.assert_array_equal(got.numpy(), want)
    finally:
        paddle.set_device("cpu")


@pytest.mark.gpu
def test_new_tensors_results_and_gradients_are_on_the_device(on_gpu):
    x = paddle.rand([3, 4])
    x.stop_gradient = False
    y = paddle.matmul(x, paddle.ones([4, 2]))
    paddle.exp(y[:, 0] * 2.0 - 1).sum().backward()
    for t in (x, y, x.grad):
        assert t.place == device.Place("gpu", 0)
    want = 2.0 * np.exp(x.numpy().sum(1, keepdims=True) * 2.0 - 1) * np.ones((3, 4))
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5)


@pytest.mark.gpu
def test_a_static_function_runs_on_the_device(on_gpu):
    def refine(x):
        while x.sum() > 1:
            x = x / 2
        return x

    static = paddle.jit.to_static(refine, full_graph=True)
    got = static(paddle.ones([5]))
    assert got.place == device.Place("gpu", 0)
    np.testing.assert_allclose(got.numpy(), np.full(5, 0.125))
