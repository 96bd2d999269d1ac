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


@pytest.mark.parametrize("how", [{"line_search_fn": "strong_wolfe"}, {"learning_rate": 1e-3, "history_size": 4}])
def test_a_restored_optimizer_goes_on_from_there(how, tmp_path):
    def made(start):
        x = paddle.to_tensor(start, stop_gradient=False)
        optimizer = paddle.optimizer.LBFGS(max_iter=7, parameters=[x], **how)

        def closure():
            optimizer.clear_grad()
            loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
            loss.backward()
            return loss

        return x, optimizer, closure

    x, optimizer, closure = made(START)
    assert optimizer.state_dict()["state"] == {}
    for _ in range(2):
        optimizer.step(closure)
    paddle.save(optimizer.state_dict(), tmp_path / "lbfgs.pdopt")
    y, other, other_closure = made(x.numpy())
    other.set_state_dict(paddle.load(tmp_path / "lbfgs.pdopt"))
    losses = [float(optimizer.step(closure)) for _ in range(2)]
    assert [float(other.step(other_closure)) for _ in range(2)] == losses
    np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_the_state_is_paddles():
    """Of two calls of `step` on the problem of `run`, as PaddlePaddle 3.3.1 gave it."""
    x = paddle.to_tensor(START, stop_gradient=False)
    optimizer = paddle.optimizer.LBFGS(max_iter=7, line_search_fn="strong_wolfe", history_size=4, parameters=[x])

    def closure():
        optimizer.clear_grad()
        loss = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    state = optimizer.state_dict()["state"]
    numbers = {name: np.round(np.asarray(state[name]), 6).tolist() for name in WANTED if name not in LISTS}
    numbers |= {name: [np.round(np.asarray(t), 6).tolist() for t in state[name] if t is not None] for name in LISTS}
    assert state.keys() == WANTED.keys()
    for name, want in WANTED.items():
        np.testing.assert_allclose(numbers[name], want, atol=2e-6, err_msg=name)


LISTS = ("al", "old_yk", "old_sk", "ro")
WANTED = {
    "H_diag": 0.005735,
    "al": [-1.742157, -1.896593, -1.232069, 1.021962],
    "alpha": 0.545861,
    "d": [-0.009496, 0.013491, 0.016642, 0.012254],
    "func_evals": 17,
    "n_iter": 14,
    "old_sk": [[-0.000235, 0.000345, 0.000342, 0.000336], [-0.000725, 0.001078, 0.001159, 0.000982], [-0.001839,
    0.002707, 0.003082, 0.002437], [-0.004043, 0.00624, 0.007229, 0.005432]],
    "old_yk": [[-0.003344, 0.012884, -0.025771, 0.018544], [-0.006466, 0.021895, -0.043346, 0.030858], [-0.025857,
    0.010849, -0.053503, 0.044877], [0.024253, 0.064757, -0.059971, 0.033493]],
    "prev_flat_grad": [-0.0031, 0.121711, -0.213359, 0.131549],
    "prev_loss": 3.701594,
    "ro": [376713.585498, 119872.83899, 46710.730329, 18355.809794],
}  # fmt: skip
