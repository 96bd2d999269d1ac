"""LBFGS against SciPy's minimum and against values that Paddle 3.3 gave, and its line search."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.optimizer.line_search import Point, strong_wolfe

START = np.array([-1.2, 1.0, 0.5, -0.3])


def run(steps=4, scale=1.0, **how):
    x = paddle.to_tensor(START, stop_gradient=False)
    optimizer = paddle.optimizer.LBFGS(max_iter=7, parameters=[x], **how)

    def closure():
        optimizer.clear_grad()
        loss = scale * (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    return [float(optimizer.step(closure)) for _ in range(steps)], x.numpy()


@pytest.mark.proves("optimizer.LBFGS")
@pytest.mark.parametrize(("how", "losses", "last"), [
    ({"line_search_fn": "strong_wolfe"}, [79.7, 3.701744769181971, 3.7015836638812005, 3.7014286104678615],
     [-0.77566144, 0.61309646, 0.38206666, 0.14597448]),
    ({"learning_rate": 1e-3}, [79.7, 78.7967753450301, 77.88250718238791, 76.97681309081892],
     [-1.19334312, 0.99513879, 0.50137369, -0.28452931]),
    ({"line_search_fn": "strong_wolfe", "history_size": 2},
     [79.7, 3.701775105999215, 3.701618060427799, 3.7014323523995154],
     [-0.77548948, 0.61282622, 0.38167639, 0.14561355]),
])  # fmt: skip
def test_steps_are_paddles(how, losses, last):
    found, x = run(**how)
    np.testing.assert_allclose(found, losses, rtol=1e-9)
    np.testing.assert_allclose(x, last, rtol=1e-6)


def test_it_ends_where_the_gradient_is_0():
    losses, x = run(40, line_search_fn="strong_wolfe", tolerance_change=1e-15)
    gradient = np.zeros(4)
    gradient[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    gradient[1:] += 200 * (x[1:] - x[:-1] ** 2)
    assert np.abs(gradient).max() < 1e-5
    assert losses[-1] == losses[-2]


def test_weight_decay_and_clipping_change_the_gradient():
    plain = run(1, line_search_fn="strong_wolfe")[1]
    assert not np.allclose(run(1, line_search_fn="strong_wolfe", weight_decay=10.0)[1], plain)
    clip = paddle.nn.ClipGradByGlobalNorm(0.1)
    moved = np.linalg.norm(run(1, learning_rate=1e-3, grad_clip=clip)[1] - START)
    assert moved < np.linalg.norm(run(1, learning_rate=1e-3)[1] - START)


def test_the_line_search_finds_a_point_that_satisfies_both_conditions():
    def at(step):
        return Point(step, (step - 3) ** 4 - step, np.zeros(1), 4 * (step - 3) ** 3 - 1)

    for first in (0.01, 1.0, 50.0):
        point, count = strong_wolfe(at, at(0.0), first)
        assert point.value <= at(0.0).value + 1e-4 * point.step * at(0.0).slope
        assert abs(point.slope) <= 0.9 * abs(at(0.0).slope)
        assert count < 25


def test_a_search_that_meets_infinity_comes_back():
    def at(step):
        return Point(step, -np.log(1 - step) - 3 * step if step < 1 else np.inf, np.zeros(1),
                     1 / (1 - step) - 3 if step < 1 else np.nan)  # fmt: skip

    point, _ = strong_wolfe(at, at(0.0), 4.0)
    assert 0 < point.step < 1
    assert point.value < 0


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: run(line_search_fn="armijo"), ValueError, "line_search_fn is 'armijo', not None or 'strong_wolfe'"),
    (lambda: paddle.optimizer.LBFGS(parameters=[paddle.zeros([1])]).step(), TypeError, "LBFGS.step needs a closure"),
])  # fmt: skip
def test_wrong_use_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
