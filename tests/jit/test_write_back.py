"""What a call leaves behind: the elements, gradients and attributes of real objects, with and without tensors made."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.dispatch.write_back import are_bare


class Counting:
    def __init__(self):
        self.total = paddle.zeros([2])
        self.turns = 0

    @paddle.jit.to_static(full_graph=True)
    def plain(self, x):
        self.total.add_(x)
        return x * 2

    @paddle.jit.to_static(full_graph=True)
    def with_history(self, x):
        self.last = x * 3
        self.total.add_(x.detach())
        return x * 2


def writes_of(function):
    return function.concrete_program.traced.writes


def test_elements_are_written_to_the_tensor_and_its_views():
    counting = Counting()
    total, view = counting.total, counting.total[:1]
    for _ in range(3):
        counting.plain(paddle.ones([2]))
    assert are_bare(writes_of(counting.plain))
    assert counting.total is total
    assert total.tolist() == [3.0, 3.0]
    assert view.tolist() == [3.0]


def test_what_keeps_its_history_is_made_a_tensor():
    counting, x = Counting(), paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    for _ in range(2):
        counting.with_history(x)
    assert not are_bare(writes_of(counting.with_history))
    assert counting.total.tolist() == [2.0, 4.0]
    counting.last.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("recorded", [True, False])
def test_gradients_add_up_over_calls(recorded):
    w = paddle.create_parameter([2], "float32")
    w.set_value(np.array([1.0, -1.0], "float32"))

    @paddle.jit.to_static(full_graph=True)
    def step(x):
        with paddle.enable_grad():
            loss = (w * w * x).sum()
            loss.backward()
        return loss

    for turn in range(1, 4):
        with paddle.set_grad_enabled(recorded):
            step(paddle.ones([2]))
        assert w.grad.tolist() == [2.0 * turn, -2.0 * turn]
        assert w.grad.stop_gradient
    first = w.grad
    w.clear_gradient(False)
    step(paddle.ones([2]))
    assert w.grad.tolist() == [2.0, -2.0]
    assert first.tolist() == [6.0, -6.0]


def test_a_gradient_is_cleared():
    w = paddle.create_parameter([2], "float32")

    @paddle.jit.to_static(full_graph=True)
    def step(x):
        loss = (w * x).sum()
        loss.backward()
        w.set_value(w - w.grad)
        w.clear_gradient(False)
        return loss

    w.set_value(np.array([1.0, -1.0], "float32"))
    for turn in range(1, 4):
        step(paddle.ones([2]))
        assert w.grad is None
        assert w.tolist() == [1.0 - turn, -1.0 - turn]
    assert are_bare(writes_of(step))
