"""Axes of extent 1 that only the run knows: `squeeze` gives the rank that eager mode gives."""

import numpy as np
import pytest

import dy2st as paddle

SHAPES = [(1,), (3,), (1, 5), (3, 1), (1, 1), (2, 3), (1, 4, 1), (2, 1, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_the_rank_is_that_of_eager_mode(shape, axis):
    static = paddle.jit.to_static(lambda x: paddle.squeeze(x * 2, axis), full_graph=True)
    for there in (SHAPES[0], shape):
        x = paddle.to_tensor(np.arange(np.prod(there), dtype="float32").reshape(there))
        np.testing.assert_array_equal(static(x).numpy(), paddle.squeeze(x * 2, axis).numpy())


def test_one_program_serves_both_ranks():
    @paddle.jit.to_static(full_graph=True)
    def f(x, labels):
        return (x * labels.squeeze(-1)).sum()

    for shape in ((4, 1), (4, 4), (1, 1)):
        x, labels = paddle.ones([4]), paddle.full(list(shape), 2.0)
        assert f(x, labels).item() == (x * labels.squeeze(-1)).sum().item()
    assert len(f.program_cache) == 1


def test_gradients_go_through_it():
    def f(x):
        return (x.squeeze() ** 2).sum()

    static = paddle.jit.to_static(f, full_graph=True)
    for shape in ([3, 1], [2, 3], [1]):
        x = paddle.ones(shape)
        x.stop_gradient = False
        static(x).backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.full(shape, 2.0))


def test_a_program_built_by_hand_has_one_rank(main):
    x = paddle.static.data("x", [-1, 3, 1], "float32")
    y = paddle.squeeze(x)
    (found,) = paddle.static.Executor().run(main, feed={"x": np.ones((1, 3, 1), "float32")}, fetch_list=[y])
    assert found.shape == (1, 3)
