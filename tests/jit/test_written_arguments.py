"""Writes in place to what may be an argument: the caller sees them, or the function runs eagerly."""

import numpy as np
import pytest

import dy2st as paddle


def after_a_branch(x, y, n):
    if y.sum() > 0:
        x = x * 2
    x.zero_()
    return x


def in_a_loop(x, y, n):
    i = 0
    while i < n:
        x[0] = 7
        x = x * y
        i += 1
    return x


def after_a_loop(x, y, n):
    i = 0
    while i < n:
        x = x * y
        i += 1
    x[1:] += 1
    return x


def of_one_of_two(x, y, n):
    z = x if n > 1 else y
    z.add_(y)
    return z


@pytest.mark.parametrize("function", [after_a_branch, in_a_loop, after_a_loop, of_one_of_two])
@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_the_caller_sees_what_eager_mode_shows(function):
    static = paddle.jit.to_static(function)
    for n in (0, 1, 3):
        for sign in (1.0, -1.0):
            kinds = [[paddle.to_tensor([1.0, 2.0, 3.0]), paddle.to_tensor([sign, 2.0 * sign, sign])] for _ in range(2)]
            results = [f(*a, paddle.to_tensor(n)) for f, a in zip((function, static), kinds)]
            np.testing.assert_array_equal(results[1].numpy(), results[0].numpy())
            for wanted, found in zip(*kinds):
                np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_the_reason_is_said():
    static = paddle.jit.to_static(after_a_branch)
    with pytest.warns(UserWarning, match="only the run will tell whether another variable, item or attribute is the"):
        static(paddle.ones([2]), paddle.ones([2]), paddle.to_tensor(1))


def test_what_both_branches_make_anew_is_no_argument():
    def f(x, y):
        if y.sum() > 0:
            x = x * 2
        else:
            x = x * 3
        x.add_(y)
        return x

    static = paddle.jit.to_static(f, full_graph=True)
    x = paddle.ones([2])
    np.testing.assert_array_equal(static(x, x).numpy(), [3.0, 3.0])
    np.testing.assert_array_equal(x.numpy(), [1.0, 1.0])
