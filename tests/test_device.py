"""Which devices there are, and what is not here."""

import pytest

import dy2st as paddle
from dy2st import device


@pytest.mark.proves("is_compiled_with_cuda device.is_compiled_with_cuda set_device")
def test_devices_are_counted():
    count = device.device_count()
    assert device.get_all_device_type() == (["cpu", "gpu"] if count else ["cpu"])
    assert device.get_available_device() == ["cpu", *(f"gpu:{i}" for i in range(count))]
    assert device.is_compiled_with_cuda() is paddle.is_compiled_with_cuda()
    device.synchronize("cpu")


@pytest.mark.parametrize("what", ["cinn", "distribute", "ipu", "rocm", "xpu"])
def test_what_is_not_here_says_no(what):
    assert getattr(paddle, f"is_compiled_with_{what}")() is False
    assert getattr(device, f"is_compiled_with_{what}")() is False


def test_other_devices_are_refused_by_name():
    assert device.is_compiled_with_custom_device("npu") is False
    with pytest.raises(ValueError, match="device 'npu' is not here"):
        paddle.set_device("npu")


@pytest.mark.proves("Tensor.device Tensor.is_cuda Tensor.get_device")
def test_methods_say_where_a_tensor_is():
    x = paddle.ones([2, 3])
    assert (x.is_cuda, x.get_device(), x.device.is_cpu_place()) == (False, -1, True)
    assert (x.stride(), x.stride(1), x.is_same_shape(x.clone())) == ([3, 1], 1, True)
    assert x.requires_grad_().requires_grad
    x.requires_grad = False
    assert x.stop_gradient
    assert x.repeat(2, 1).shape == x.repeat([2, 1]).shape == [4, 3]
    assert [t.shape for t in x.split_with_sizes([1, 2], 1)] == [[2, 1], [2, 2]]
    assert x.new_empty([4]).dtype == "float32"
