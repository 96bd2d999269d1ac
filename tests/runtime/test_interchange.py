"""Tensors and the arrays of other libraries: NumPy's protocols, DLPack, the array API."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.eager.tensor import Tensor


def test_numpy_takes_a_tensor_without_a_copy():
    x = paddle.to_tensor(np.arange(3.0))
    array = np.asarray(x)
    array[0] = 7.0
    assert x.tolist() == [7.0, 1.0, 2.0]
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert not np.shares_memory(np.array(x), np.asarray(x))
    assert np.asarray(x, dtype="float32").dtype == np.float32


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "**", "@", "<", "=="])
def test_a_tensor_takes_over_where_an_array_stands_first(operator):
    array, x = np.array([1.0, 2.0]), paddle.to_tensor([3.0, 4.0], dtype="float64")
    got = eval(f"a {operator} x", {"a": array, "x": x})
    assert isinstance(got, paddle.Tensor)
    np.testing.assert_allclose(got.numpy(), eval(f"a {operator} x", {"a": array, "x": x.numpy()}))


def test_dlpack_shares_memory_both_ways():
    x = paddle.to_tensor([1.0, 2.0])
    array = np.from_dlpack(x)
    array_of_memory = np.asarray(x)
    assert np.shares_memory(array, array_of_memory)
    assert x.__dlpack_device__() == (1, 0)
    source = np.array([1, 2, 3])
    y = paddle.from_dlpack(source)
    source[0] = 9
    assert y.tolist() == [9, 2, 3]


def test_dlpack_with_the_arguments_of_its_protocol():
    x = paddle.to_tensor([1.0])
    assert "dltensor" in repr(x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True))


def test_a_tensor_with_a_gradient_is_not_shared():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(BufferError, match=r"cannot be shared by DLPack: use x\.detach\(\)"):
        np.from_dlpack(x)
    assert np.from_dlpack(x.detach()).tolist() == [1.0]


def test_a_tensor_on_the_cpu_has_no_cuda_interface():
    with pytest.raises(AttributeError, match="__cuda_array_interface__"):
        paddle.ones([2]).__cuda_array_interface__


def test_the_interface_of_the_array_on_a_device_is_handed_on():
    on_device = SimpleNamespace(__cuda_array_interface__={"shape": (2,), "version": 3})
    assert Tensor(on_device).__cuda_array_interface__["shape"] == (2,)
    with pytest.raises(BufferError, match=r"cannot be shared with CUDA libraries: use x\.detach\(\)"):
        Tensor(on_device, stop_gradient=False).__cuda_array_interface__


@pytest.mark.gpu
def test_cupy_takes_a_tensor_without_a_copy():
    import cupy

    x = paddle.to_tensor([1.0, 2.0], place="gpu")
    shared = cupy.asarray(x)
    shared[0] = 7.0
    assert x.tolist() == [7.0, 2.0]
    assert cupy.from_dlpack(x).tolist() == [7.0, 2.0]
    assert paddle.to_tensor(shared).tolist() == [7.0, 2.0]


def test_tensors_can_be_copied_and_pickled():
    x = paddle.to_tensor([[1.0, 2.0]])
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.tolist() == x.tolist()
        assert made.dtype == x.dtype
