"""Nonsense is refused by the name of the argument; edges that have a meaning have it, in eager mode and in Programs."""

import numpy as np
import pytest

import dy2st as paddle

X = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
switch_case = paddle.static.nn.switch_case


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: paddle.tile(X, [-1]), ValueError, r"tile: repeat_times must not be negative, but is \[-1\]"),
    (lambda: paddle.tile(X, "ab"), TypeError, "tile: repeat_times: an int is needed, not str 'ab'"),
    (lambda: paddle.tile(X, None), TypeError, "tile: repeat_times: an int is needed, not NoneType"),
    (lambda: paddle.linspace(0, 1, -1), ValueError, "linspace: num must not be negative, but is -1"),
    (lambda: switch_case("a", {1: lambda: 1}), TypeError, "switch_case: branch_index must be an integer, not str"),
    (lambda: switch_case(None, {1: lambda: 1}), TypeError, "switch_case: branch_index must be .*, not NoneType"),
    (lambda: paddle.static.nn.cond("x", lambda: 1, lambda: 2), TypeError, "cond: pred must be .*, not str"),
    (lambda: paddle.static.nn.cond(True, 1, 2), TypeError, "cond: true_fn must be a function, not int"),
    (lambda: paddle.grad("a", X), TypeError, "grad: outputs must be a Tensor or a list of Tensors, but has a str"),
    (lambda: paddle.grad(X.sum(), None), TypeError, "grad: inputs must be .* but has a NoneType"),
    (lambda: paddle.grad(X.sum(), [X, 1]), TypeError, "grad: inputs must be .* but has a int"),
    (lambda: paddle.grad(X * 2, X, grad_outputs="x"), TypeError, "grad: grad_outputs must be .* but has a str"),
    (lambda: paddle.grad(X.sum(), X, no_grad_vars=3), TypeError, "grad: no_grad_vars must be .* but has a int"),
])  # fmt: skip
def test_the_argument_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_tensors_may_come_from_any_iterable():
    assert [g.tolist() for g in paddle.grad((X * X).sum(), (x for x in [X]))] == [[2.0, 4.0]]


def test_no_numbers_in_a_line():
    static = paddle.jit.to_static(lambda n: paddle.linspace(0, n, n), full_graph=True)
    assert paddle.linspace(0, 0, 0).shape == [0]
    for count in (0, 3, 0, 1):
        np.testing.assert_array_equal(static(count).numpy(), np.linspace(0, count, count))


def test_cross_takes_the_first_axis_of_three_that_a_call_has():
    static = paddle.jit.to_static(lambda a, b: paddle.cross(a, b), full_graph=True)
    for shape in ((3, 2), (2, 3), (3, 3), (2, 3), (3, 2), (5, 3)):
        a, b = np.random.default_rng(0).normal(size=(2, *shape))
        wanted = np.cross(a, b, axis=shape.index(3))
        for run in (paddle.cross, static):
            np.testing.assert_allclose(run(paddle.to_tensor(a), paddle.to_tensor(b)).numpy(), wanted)
    with pytest.raises(ValueError, match=r"cross|reshape"):
        static(paddle.ones([2, 2]), paddle.ones([2, 2]))
