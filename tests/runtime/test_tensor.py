"""What every eager tensor is: conversions to Python and NumPy, memory that is shared or not, copies, text."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import dy2st as paddle

ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "0-d": np.array(2.5),
    "empty": np.zeros((0, 3)),
    "strided": np.arange(12.0).reshape(3, 4)[::2, ::-1],
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "broadcast": np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),
    "special": np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ARRAYS)
def test_conversions_give_the_elements(name, dtype):
    array = ARRAYS[name].astype(dtype)
    x = paddle.to_tensor(array)
    assert (x.shape, x.ndim, x.size, x.dtype) == (list(array.shape), array.ndim, array.size, dtype)
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(np.asarray(x), array)
    np.testing.assert_array_equal(x.tolist(), array.tolist())
    assert np.asarray(x, "float16").dtype == np.float16
    np.testing.assert_array_equal(copy.deepcopy(x).numpy(), array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).numpy(), array)


@pytest.mark.parametrize("name", ["matrix", "strided", "transposed", "broadcast", "special", "empty"])
def test_a_length_and_rows_are_those_of_numpy(name):
    array = ARRAYS[name]
    x = paddle.to_tensor(array)
    assert len(x) == len(array)
    rows = list(x)
    assert len(rows) == len(array)
    for row, want in zip(rows, array, strict=True):
        np.testing.assert_array_equal(row.numpy(), want)


@pytest.mark.proves("Tensor.numpy")
def test_to_tensor_and_numpy_copy():
    array = np.ones(2)
    x = paddle.to_tensor(array)
    array[0] = 5
    x.numpy()[1] = 7
    assert x.tolist() == [1.0, 1.0]


def test_np_asarray_shares_memory_unless_a_copy_is_asked_for():
    x = paddle.to_tensor([1.0, 2.0])
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert not np.shares_memory(np.array(x, copy=True), np.asarray(x))


@pytest.mark.proves("to_dlpack from_dlpack")
def test_dlpack_shares_memory_both_ways():
    array = np.array([1.0, 2.0])
    x = paddle.from_dlpack(array)
    back = np.from_dlpack(x)
    assert np.shares_memory(array, back)
    array[0] = 9
    assert x.tolist() == [9.0, 2.0]
    assert x.__dlpack_device__() == (1, 0)
    capsule = paddle.to_dlpack(x)
    assert paddle.from_dlpack(capsule).tolist() == [9.0, 2.0]


def test_dlpack_of_a_tensor_with_a_gradient_is_refused():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(BufferError, match="a tensor that needs a gradient cannot be shared by DLPack"):
        np.from_dlpack(x)
    assert np.from_dlpack(x.detach()).tolist() == [1.0]


@pytest.mark.parametrize(("array", "python"), [
    (np.array(2.5), 2.5), (np.array([3]), 3), (np.array([[True]]), True), (np.array(1 + 2j), 1 + 2j),
])  # fmt: skip
@pytest.mark.proves("Tensor.item")
def test_item_gives_a_python_number(array, python):
    found = paddle.to_tensor(array).item()
    assert found == python
    assert type(found) is type(python)


def test_item_at_a_place():
    assert paddle.to_tensor([[1, 2], [3, 4]]).item(1, 0) == 3
    assert paddle.to_tensor([[1, 2], [3, 4]]).item(3) == 4


def test_item_of_several_elements_is_refused():
    with pytest.raises(ValueError, match=r"only a tensor of one element has a Python value, this one has shape \[2\]"):
        paddle.to_tensor([1, 2]).item()


def test_python_numbers_from_tensors():
    x = paddle.to_tensor([2.75])
    assert (int(x), float(x), bool(x), complex(x)) == (2, 2.75, True, 2.75 + 0j)
    assert [10, 20, 30][paddle.to_tensor(1)] == 20
    assert not paddle.to_tensor(0)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: bool(paddle.to_tensor([1, 2])), ValueError, "only a tensor of one element has a Python value"),
    (lambda: int(paddle.zeros([0])), ValueError, "only a tensor of one element has a Python value"),
    (lambda: [1, 2][paddle.to_tensor(1.0)], TypeError, "only integer tensors can be an index, this one is float32"),
    (lambda: len(paddle.to_tensor(1)), TypeError, "len\\(\\) of a 0-D tensor"),
    (lambda: iter(paddle.to_tensor(1)), TypeError, "iteration over a 0-D tensor"),
    (lambda: setattr(paddle.ones([1]), "grad", 3), TypeError, "a gradient is a Tensor or None, not int"),
    (lambda: copy.deepcopy(paddle.to_tensor([1.0], stop_gradient=False) * 2), RuntimeError,
     "only tensors made by the user can be deep-copied"),
    (lambda: paddle.to_tensor([1.0]) + "a", TypeError, "unsupported operand"),
    (lambda: paddle.to_tensor([[1], [1, 2]]), ValueError, "to_tensor\\(\\) needs nested lists of equal lengths"),
    (lambda: paddle.to_tensor("text"), TypeError, "to_tensor\\(\\) needs numbers, lists, arrays or tensors, not str"),
    (lambda: paddle.to_tensor(["a"]), TypeError, "to_tensor\\(\\) needs lists of numbers"),
    (lambda: paddle.to_tensor(np.array(["a"])), TypeError, "to_tensor\\(\\) needs numbers, not an array of"),
])  # fmt: skip
def test_refusals_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_tensors_are_hashed_by_identity_and_compared_by_element():
    x, y = paddle.to_tensor([1, 2]), paddle.to_tensor([1, 2])
    assert len({x, y, x}) == 2
    assert (x == y).tolist() == [True, True]
    assert 2 in x
    assert 5 not in x


def test_a_shallow_copy_shares_memory_and_a_deep_one_does_not():
    x = paddle.to_tensor([1.0, 2.0])
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x[0] = 5.0
    assert (shallow.tolist(), deep.tolist()) == ([5.0, 2.0], [1.0, 2.0])


def test_deep_copies_keep_sharing_and_attributes():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    x.note = [x]
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first.note[0] is first
    assert not first.stop_gradient


def test_a_pickle_has_data_name_and_attributes():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x.name, x.note = "weights", "mine"
    y = pickle.loads(pickle.dumps(x))
    assert (y.tolist(), y.name, y.note, y.stop_gradient) == ([1.0, 2.0], "weights", "mine", False)


@pytest.mark.parametrize(("make", "text"), [
    (lambda: paddle.to_tensor([1.0, 2.0]),
     "Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,\n       [1., 2.])"),
    (lambda: paddle.to_tensor([1.0, 2.0], stop_gradient=False),
     "Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,\n       [1., 2.])"),
    (lambda: paddle.to_tensor([[1, 2], [3, 4]]),
     "Tensor(shape=[2, 2], dtype=int64, place=Place(cpu), stop_gradient=True,\n       [[1, 2],\n        [3, 4]])"),
    (lambda: paddle.to_tensor(True),
     "Tensor(shape=[], dtype=bool, place=Place(cpu), stop_gradient=True,\n       True)"),
    (lambda: paddle.zeros([0, 3]),
     "Tensor(shape=[0, 3], dtype=float32, place=Place(cpu), stop_gradient=True,\n       [])"),
])  # fmt: skip
def test_the_text_is_paddle_s(make, text):
    assert repr(make()) == str(make()) == text


def test_formatting_one_element():
    assert f"{paddle.to_tensor(2.5):.2f}" == "2.50"
    assert f"{paddle.to_tensor([7]):03d}" == "007"


def test_names_are_different_and_can_be_set():
    x, y = paddle.ones([1]), paddle.ones([1])
    assert x.name != y.name
    x.name = "x"
    assert x.name == "x"


def test_views_share_memory_and_count_versions_together():
    base = paddle.arange(6).reshape([2, 3])
    row = base[1]
    row[0] = 50
    assert base.tolist() == [[0, 1, 2], [50, 4, 5]]
    assert base.inplace_version == row.inplace_version == 1
    base.transpose([1, 0])[0, 0] = 9
    assert base[0, 0].item() == 9


def test_numpy_arrays_and_numbers_stand_on_either_side():
    x = paddle.to_tensor([1.0, 2.0])
    for made in (x + np.ones(2, np.float32), np.ones(2, np.float32) + x, 1 + x, x + np.float32(1)):
        assert isinstance(made, paddle.Tensor)
        assert made.tolist() == [2.0, 3.0]


def test_large_numbers_become_infinities_without_a_warning():
    x = paddle.to_tensor([1.0, -1.0])
    assert (x * 1e300).tolist() == [float("inf"), -float("inf")]
    assert (1e39 * x).tolist() == [float("inf"), -float("inf")]
    assert (x / 0.0).tolist() == [float("inf"), -float("inf")]
