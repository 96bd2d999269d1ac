"""The tape: backward, grad, hooks, modes, leaves, what is freed and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import dy2st as paddle
from tests.in_threads import in_threads


def leaf(values, dtype="float64"):
    return paddle.to_tensor(np.asarray(values, dtype), stop_gradient=False)


def test_backward_sums_into_leaves_and_clear_grad_forgets():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert x.grad.stop_gradient
    np.testing.assert_array_equal(x.gradient(), [5.0, 7.0])
    x.clear_grad()
    assert x.grad is None or x.grad.tolist() == [0.0, 0.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_two_leaves_never_share_the_memory_of_a_gradient():
    x, y = leaf([1.0]), leaf([2.0])
    (x + y).backward()
    x.grad.zero_()
    assert y.grad.tolist() == [1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((0, 3), (3,)), ((1, 3), (0, 3))])
def test_broadcast_operands_get_gradients_of_their_own_shape(shapes, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 2, s).astype(dtype) for s in shapes)
    for function, da, db in (
        (lambda x, y: x + y, np.ones_like(a + b), np.ones_like(a + b)),
        (lambda x, y: x - y, np.ones_like(a + b), -np.ones_like(a + b)),
        (lambda x, y: x * y, b + 0 * a, a + 0 * b),
        (lambda x, y: x / y, 1 / b + 0 * a, -a / (b * b)),
    ):
        x, y = leaf(a, dtype), leaf(b, dtype)
        function(x, y).sum().backward()
        for got, whole, like in ((x.grad, da, a), (y.grad, db, b)):
            extra = whole.ndim - like.ndim
            ones = tuple(extra + i for i, e in enumerate(like.shape) if e == 1 and whole.shape[extra + i] != 1)
            want = whole.sum((*range(extra), *ones)).reshape(like.shape)
            assert got.dtype == dtype
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("function", [
    lambda x: x * 2, lambda x: 2 * x, lambda x: x + 1, lambda x: 1 - x, lambda x: x - 1, lambda x: x / 4,
    lambda x: 4 / x, lambda x: x * np.float64(2), lambda x: x**3, lambda x: -x,
])  # fmt: skip
def test_a_number_beside_a_tensor_has_the_slope_of_its_function(function):
    x = leaf([0.5, 2.0])
    function(x).sum().backward()
    step = 1e-6
    high, low = (function(x.detach() + s).numpy() for s in (step, -step))
    np.testing.assert_allclose(x.grad.numpy(), (high - low) / (2 * step), rtol=1e-7)


def test_special_values_flow_back_as_they_are():
    x = leaf([np.nan, np.inf, 0.0])
    (x * leaf([2.0, 3.0, np.inf])).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 3.0, np.inf])


def test_a_tape_is_walked_once_unless_it_is_retained():
    x = leaf([2.0])
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="was freed by an earlier backward; pass retain_graph=True to the first one"):
        y.backward()
    assert x.grad.tolist() == [8.0]


def test_grad_returns_gradients_and_leaves_grad_alone():
    x, y = leaf([2.0]), leaf([3.0])
    dx, dy = paddle.grad(x * y, [x, y], grad_outputs=paddle.to_tensor([10.0], "float64"))
    assert (dx.tolist(), dy.tolist(), x.grad) == ([30.0], [20.0], None)


def test_any_order_follows_with_create_graph():
    x = leaf(2.0)
    y = x**4
    for want in (32.0, 48.0, 48.0, 24.0):
        (y,) = paddle.grad(y, x, create_graph=True)
        assert float(y) == pytest.approx(want)


def test_what_does_not_depend_is_an_error_or_none():
    x, y = leaf([1.0]), leaf([1.0])
    z = x * 2
    with pytest.raises(ValueError, match="has no gradient: no output depends on it; allow_unused=True gives None"):
        paddle.grad(z, [y], retain_graph=True)
    assert paddle.grad(z, [y], allow_unused=True) == [None]
    with pytest.raises(ValueError, match="has no gradient: its stop_gradient is True"):
        paddle.grad(x * 2, [x.detach()])


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: paddle.ones([1]).backward(), RuntimeError, "backward\\(\\) of a tensor that needs no gradient"),
    (lambda: (leaf([1.0, 2.0]) * 2).backward(paddle.ones([3])), ValueError, "the cotangent has shape \\[3\\]"),
    (lambda: paddle.grad(leaf([1.0]) * 2, leaf([1.0]), only_inputs=False), ValueError, "only_inputs=False is not"),
    (lambda: paddle.grad([leaf([1.0]) * 2], leaf([1.0]), grad_outputs=[None, None]), ValueError,
     "2 cotangents were given for 1 tensors"),
    (lambda: paddle.ones([1]).register_hook(lambda g: g), RuntimeError, "a hook on a tensor that needs no gradient"),
])  # fmt: skip
def test_refusals_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_hooks_see_and_replace_gradients():
    x = leaf([1.0, 2.0])
    seen = []
    y = x * 3
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    leaf_handle = x.register_hook(lambda g: g * 10)
    (y * y).sum().backward()
    assert seen == [[6.0, 12.0]]
    assert x.grad.tolist() == [180.0, 360.0]
    assert handle.remove()
    assert not handle.remove()
    assert leaf_handle.remove()
    x.clear_grad()
    (x * 3).sum().backward()
    assert (seen, x.grad.tolist()) == ([[6.0, 12.0]], [3.0, 3.0])


def test_no_gradient_flows_through_detach_stop_gradient_and_no_grad_vars():
    x = leaf([3.0])
    with paddle.no_grad():
        assert (x * 2).stop_gradient
    assert (x.detach() * 2).stop_gradient
    y = x * x
    y.stop_gradient = True
    assert (y * 2).stop_gradient
    z = x * x
    (dx,) = paddle.grad(z * x, x, no_grad_vars=[z])
    assert dx.tolist() == [9.0]


def test_integers_and_comparisons_carry_no_gradient():
    x = leaf([1.5])
    assert (x > 1).stop_gradient
    assert x.astype("int64").stop_gradient
    assert not x.astype("float32").stop_gradient


def test_a_view_of_a_leaf_sends_its_gradient_to_the_leaf():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (x[0] * x.transpose([1, 0])[1]).sum().backward()
    assert x.grad.tolist() == [[2.0, 1.0 + 4.0], [0.0, 2.0]]


def test_a_long_chain_needs_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(3000):
        y = y + x
    y.backward()
    assert float(x.grad) == 3001.0


def test_threads_have_tapes_and_modes_of_their_own():
    x = leaf(2.0)
    found = []

    def work():
        with paddle.no_grad():
            found.append((x * x).stop_gradient)
        found.append(float(paddle.grad(x * x * x, x)[0]))

    in_threads(*[work] * 4)
    assert sorted(found) == [True] * 4 + [12.0] * 4
    assert paddle.is_grad_enabled()


def test_the_short_way_gives_what_the_general_way_gives():
    """Operators take a short way for two plain arrays; functions do not."""
    rng = np.random.default_rng(0)
    for dtype in ("float16", "float32", "float64", "int32", "bool", "complex64"):
        a, b = (rng.integers(1, 5, (2, 3)).astype(dtype) for _ in range(2))
        for operator, function in (("__add__", paddle.add), ("__mul__", paddle.multiply)):
            got = getattr(paddle.to_tensor(a), operator)(paddle.to_tensor(b))
            want = function(paddle.to_tensor(a), paddle.to_tensor(b))
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_a_summed_gradient_of_rank_0_is_an_array():
    x = paddle.to_tensor(3.0, stop_gradient=False)
    for _ in range(2):
        (x * x).backward()
    assert isinstance(x.grad.payload, np.ndarray)
    x.clear_gradient()
    assert float(x.grad) == 0.0


@pytest.mark.parametrize("call", [paddle.grad, paddle.autograd.backward])
def test_a_dump_of_the_graph_is_refused(call):
    x = paddle.to_tensor(1.0, stop_gradient=False)
    with pytest.raises(ValueError, match="dump_backward_graph_path: there is no graph of nodes to write"):
        call([x * x], [x], dump_backward_graph_path="graph")
