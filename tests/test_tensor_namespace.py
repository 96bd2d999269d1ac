"""`paddle.tensor` has every function on tensors."""

import pytest

import dy2st as paddle


@pytest.mark.parametrize("name", ["add", "concat", "fill_constant", "matmul", "topk", "add_", "rand", "assign"])
def test_a_function_is_there(name):
    assert callable(getattr(paddle.tensor, name))
    assert name in dir(paddle.tensor)


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match=r"module 'dy2st\.tensor' has no attribute 'no_such'"):
        paddle.tensor.no_such
