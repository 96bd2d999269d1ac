"""Derivatives that are taken inside of a trace, across `try`: as eagerly, and nothing is printed twice."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.incubate.autograd import jvp


def second_order(x):
    try:
        print("in")
        if x.sum() > 3:
            raise ValueError("large")
        y = x * 2
    except ValueError:
        y = x * 3
    (slope,) = paddle.grad((y * y).sum(), x, create_graph=True)
    return slope, paddle.grad(slope.sum(), x)[0]


def what_an_operation_raises(x):
    table = paddle.to_tensor([5.0, 6.0], dtype="float64")
    try:
        print("before")
        y = table[x.sum().astype("int64")] * x
        print("behind")
    except IndexError:
        y = x * 3
    return paddle.grad((y * y).sum(), x)[0]


def in_a_loop(x):
    y = x
    for _ in range(6):
        try:
            if y.sum() > 5:
                raise KeyError("large")
            y = y * 1.5
        except KeyError:
            y = y - 1
    return paddle.grad(y.sum(), x)[0]


def nested(x):
    try:
        try:
            if x.sum() > 3:
                raise ValueError("large")
            y = x * 2
        except TypeError:
            y = x * 5
        y = y * 7
    except ValueError:
        y = x * 3
    y.sum().backward()
    return x.grad


def forward(x):
    def tripled(x):
        try:
            if x.sum() > 3:
                raise ValueError("large")
            return x * 2
        except ValueError:
            return x * 3

    return jvp(tripled, x, paddle.ones([3], "float64"))[1]


@pytest.mark.parametrize("f", [second_order, what_an_operation_raises, in_a_loop, nested, forward])
def test_derivatives_are_those_of_eager_mode(f, capsys):
    static = paddle.jit.to_static(f, full_graph=True)
    for numbers in ([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]):
        found = []
        for run in (f, static):
            made = run(paddle.to_tensor(np.array(numbers), stop_gradient=False))
            arrays = [t.numpy() for t in (made if isinstance(made, tuple) else (made,))]
            found.append((arrays, capsys.readouterr().out))
        assert found[0][1] == found[1][1]
        for eager, ours in zip(found[0][0], found[1][0], strict=True):
            np.testing.assert_allclose(ours, eager, rtol=1e-12)
    assert len(static.program_cache) == 1
