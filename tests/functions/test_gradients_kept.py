"""What a tensor says of its place in a differentiation: kept gradients, leaves, counts of writes."""

import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue


def test_a_gradient_is_kept_once_however_often_it_is_asked_for():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 2
    for _ in range(3):
        y.retain_grads()
    z = (y * 3).sum()
    z.backward(retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0]
    z.backward()
    assert y.grad.tolist() == [6.0, 6.0]  # as the gradients of leaves are summed
    assert x.grad.tolist() == [12.0, 12.0]


def kept(x):
    y = x * 2
    y.retain_grads()
    (y * 3).sum().backward()
    return y.grad


def leaves(x):
    y = x * 2
    made = paddle.zeros([1])
    made.stop_gradient = False
    inner = y
    for i in range(2):
        inner = inner * x
    return [t.is_leaf for t in (x, y, made, made + y, y.detach(), inner, paddle.ones([1]) * 2)]


def versions(x):
    y = x * 2
    before = y.inplace_version
    y.add_(x)
    return y * (y.inplace_version - before)


@pytest.mark.parametrize("function", [kept, versions])
def test_what_a_program_does_not_know_runs_eagerly(function):
    with pytest.raises(NeedsPythonValue, match=r"retain_grads\(\)|inplace_version"):
        paddle.jit.to_static(function, full_graph=True)(paddle.to_tensor([1.0], stop_gradient=False))
    static = paddle.jit.to_static(function)
    for call, value in enumerate((1.0, 2.0, 3.0)):
        x = paddle.to_tensor([value], stop_gradient=False)
        if call == 0:
            with pytest.warns(UserWarning, match="runs eagerly"):
                found = static(x)
        else:
            found = static(x)
        assert found.tolist() == function(paddle.to_tensor([value], stop_gradient=False)).tolist()


def test_leaves_are_the_same_in_a_program():
    static = paddle.jit.to_static(leaves, full_graph=True)
    for needs in (True, False, True):
        x = paddle.to_tensor([1.0], stop_gradient=not needs)
        wanted = [True, not needs, True, False, True, not needs, True]
        assert leaves(x) == static(x) == wanted
