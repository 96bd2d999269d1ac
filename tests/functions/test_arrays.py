"""Tensor arrays are Python lists, in eager mode and with symbolic places and lengths."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import tensor as T


@pytest.mark.proves("tensor.array_write tensor.create_array")
def test_an_array_is_written_and_read():
    array = T.create_array("float32", [paddle.ones([2])])
    T.array_write(paddle.zeros([2]), paddle.to_tensor(1), array)
    T.array_write(paddle.full([2], 3.0), 0, array)
    assert [t.tolist() for t in array] == [[3.0, 3.0], [0.0, 0.0]]
    assert T.array_read(array, paddle.to_tensor([1])).tolist() == [0.0, 0.0]
    assert T.array_length(array) == 2
    assert T.array_pop(array).tolist() == [0.0, 0.0]
    assert len(array) == 1
    assert len(T.array_write(paddle.ones([1]), 0)) == 1


def test_a_loop_fills_an_array_in_a_program():
    def powers(x, n):
        array = T.create_array("float32")
        i = paddle.zeros([], "int64")
        while i < n:
            T.array_write(x ** i.astype("float32"), i, array)
            i += 1
        return paddle.stack(array), T.array_length(array), T.array_read(array, n - 1)

    x = paddle.to_tensor([2.0])
    static = paddle.jit.to_static(powers, full_graph=True)
    for n in (3, 5):
        stacked, length, last = static(x, paddle.to_tensor(n))
        np.testing.assert_allclose(stacked.numpy()[:, 0], 2.0 ** np.arange(n))
        assert int(length) == n
        assert last.item() == 2.0 ** (n - 1)


def test_elements_as_lists():
    assert paddle.tolist(paddle.to_tensor([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert paddle.tolist(paddle.to_tensor(2.5)) == 2.5


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: T.create_array("float32", 3), TypeError, "initialized_list must be a list or tuple, not int"),
        (lambda: T.create_array("float32", [3]), TypeError, "a tensor array holds Tensors, not int"),
        (lambda: T.create_array("int64", [paddle.ones([1])]), TypeError, "of int64 cannot hold a tensor of float32"),
        (lambda: T.array_write(3, 0), TypeError, "a tensor array holds Tensors, not int"),
        (
            lambda: T.array_write(paddle.ones([1]), 1),
            IndexError,
            "place 1 is neither in the array nor next to its last",
        ),
    ],
)
def test_wrong_arrays_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
