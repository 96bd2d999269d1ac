"""Operations that the inputs at hand do not fit, in branches that they do not take: code is made, none raises."""

import numpy as np
import pytest

import dy2st as paddle


@pytest.fixture(autouse=True)
def natively(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def too_many_rows(x):
    if x.max() > 10:
        x = x * x.unsqueeze(-1)
    return x.sum()


def an_element_that_is_not_there(x):
    if x.max() > 10:
        x = x[7] * 2
    return x.sum()


def a_write_to_it(x):
    if x.max() > 10:
        x = x * 1
        x[7] = 0
    return x.sum()


@pytest.mark.parametrize("function", [too_many_rows, an_element_that_is_not_there, a_write_to_it])
def test_a_branch_that_is_not_taken_may_not_fit(function):
    static = paddle.jit.to_static(function, full_graph=True)
    x = paddle.to_tensor(np.arange(6.0).reshape(2, 3))
    for _ in range(2):
        assert static(x).item() == function(x).item()
    with pytest.raises((ValueError, IndexError)) as eager:
        function(x + 10)
    with pytest.raises(eager.type):
        static(x + 10)


def test_ranks_that_differ_between_branches():
    def f(x, k):
        x = x[x > 0]
        if k > 2:
            y = x * 2
        else:
            y = x.reshape([1, -1])[:, 1:]
        if x.max() < 3:
            x = x == y
        return x.sum()

    static = paddle.jit.to_static(f, full_graph=True)
    for k in (3, 1, 3):
        for x in ([1.0, 2.0, -1.0], [4.0, 5.0, 1.0]):
            given = paddle.to_tensor(x), paddle.to_tensor(k)
            try:
                wanted = f(*given).item()
            except ValueError:
                with pytest.raises(ValueError, match="broadcast"):
                    static(*given)
                continue
            assert static(*given).item() == wanted


@pytest.mark.parametrize("rows", [2, 300])
def test_a_minimum_over_rows_that_nobody_reads(rows):
    def f(x, n):
        for _ in range(n):
            least = x.min(axis=0)
            x = x + 1
        return x

    static = paddle.jit.to_static(f, full_graph=True)
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(rows, 40)))
    np.testing.assert_array_equal(static(x, paddle.to_tensor(2)).numpy(), (x + 1 + 1).numpy())
    with pytest.raises(ValueError, match="min"):
        static(x[:0], paddle.to_tensor(2))
