"""Writes in place to what may be an argument: the caller sees them, or the function runs eagerly."""

import warnings

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


OUTSIDE = [1.0]


def grows_what_it_also_reads_outside(x, items):
    items.append(x)
    return len(OUTSIDE) + x


class Kept:
    def __init__(self, v):
        self.v = v


KEPT = Kept(1.0)


def writes_what_it_also_reads_outside(x, one):
    one.v = x
    return KEPT.v + x


def test_a_list_that_is_an_argument_and_outside_is_one_list():
    static = paddle.jit.to_static(grows_what_it_also_reads_outside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it runs eagerly where they are one
        for given in ([], [2.0], [2.0], OUTSIDE, [2.0], OUTSIDE):
            before, own = len(OUTSIDE), given is OUTSIDE
            assert float(static(paddle.to_tensor(0.0), given)) == before + own


def test_an_object_that_is_an_argument_and_outside_is_one_object():
    static = paddle.jit.to_static(writes_what_it_also_reads_outside, full_graph=True)
    KEPT.v = 1.0
    for i, given in enumerate((Kept(0), Kept(0), Kept(0), KEPT, Kept(0), KEPT, Kept(0)), 2):
        expected = float(i) if given is KEPT else float(KEPT.v)
        assert float(static(paddle.to_tensor(float(i)), given)) == expected + i


def test_what_a_written_view_is_a_view_of_has_the_gradient_of_what_was_written():
    def write(part, y):
        part[0] = y * 3
        return y + 1

    def gradients(function):
        x, y = (paddle.to_tensor([1.0, 2.0], stop_gradient=False) for _ in range(2))
        base = x * 1
        function(base.reshape([1, 2]), y)
        (base * paddle.to_tensor([1.0, 10.0])).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    static = paddle.jit.to_static(write, full_graph=True)
    assert [gradients(static) for _ in range(4)] == [([0, 0], [3, 30])] * 4 == [gradients(write)] * 4
