"""backward() inside of a function of Programs: which tensors get a gradient, and what a write does to a leaf."""

import warnings

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import StructureError, TraceError
from dy2st.jit.static_function import FallbackWarning


def tensor(*values, needs=False):
    return paddle.to_tensor(np.array(values, "float32"), stop_gradient=not needs)


def train(fit, calls):
    """Return the losses and weights that a training function leaves, eagerly and under to_static."""
    seen = []
    for convert in (lambda f: f, lambda f: paddle.jit.to_static(f, full_graph=True)):
        paddle.seed(3)
        net = paddle.nn.Linear(2, 1)
        optimizer = paddle.optimizer.Momentum(0.05, 0.9, parameters=net.parameters())
        run = convert(fit(net, optimizer))
        rows = [run(paddle.rand([4, 2]), paddle.rand([4, 1]), *more).numpy() for more in calls]
        seen.append([*rows, net.weight.numpy(), net.bias.numpy()])
    return seen


def same(eager, static):
    for a, b in zip(eager, static, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5)


def test_several_steps_in_one_call():
    def make(net, optimizer):
        def fit(x, y):
            for _ in range(3):
                loss = paddle.nn.functional.mse_loss(net(x), y)
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
            return loss.detach()

        return fit

    same(*train(make, [(), ()]))


def test_as_many_steps_as_a_tensor_says():
    def make(net, optimizer):
        def fit(x, y, n):
            last = paddle.zeros([])
            for _ in range(n):
                loss = paddle.nn.functional.mse_loss(net(x), y)
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
                last = loss.detach()
            return last

        return fit

    same(*train(make, [(paddle.to_tensor(3),), (paddle.to_tensor(6),)]))


def test_what_is_computed_after_a_write_has_a_gradient_with_respect_to_the_leaf():
    w = tensor(2, 4, needs=True)

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        with paddle.no_grad():
            w.set_value(w * 0.5)
        return (w * x).sum()

    y = f(tensor(3, 5))
    y.backward()
    assert w.is_leaf
    assert w.tolist() == [1, 2]
    assert w.grad.tolist() == [3, 5]


def test_a_leaf_cannot_be_written_while_gradients_are_on():
    w = tensor(2, 4, needs=True)

    @paddle.jit.to_static(full_graph=True)
    def f(x):
        w.add_(x)
        return w

    with pytest.raises(RuntimeError, match="a leaf that needs a gradient cannot be changed in place"):
        f(tensor(1, 1))


def test_arguments_get_gradients_that_add_up():
    @paddle.jit.to_static(full_graph=True)
    def f(x, w):
        loss = (x * w).sum()
        if loss > 0:
            loss = loss * 2
        loss.backward()
        return loss

    x, w = tensor(1, 2, needs=True), tensor(3, 4, needs=True)
    f(x, w)
    assert x.grad.tolist() == [6, 8]
    assert w.grad.tolist() == [2, 4]
    f(x, w)
    assert x.grad.tolist() == [12, 16]
    twice = tensor(1, 2, 3, needs=True)
    f(twice, twice)
    assert twice.grad.tolist() == [4, 8, 12]


def test_an_argument_that_an_untaken_branch_used_has_none():
    @paddle.jit.to_static(full_graph=True)
    def f(x, a, b):
        loss = (a * x).sum() if x.sum() > 0 else (b * x).sum()
        loss.backward()

    a, b = tensor(1, needs=True), tensor(1, needs=True)
    f(tensor(2), a, b)
    assert a.grad.tolist() == [2]
    assert b.grad is None


def test_the_gradient_of_an_argument_is_read():
    @paddle.jit.to_static
    def f(x):
        (x * x).sum().backward()
        return x.grad + 0

    x = tensor(1, 2, needs=True)
    assert f(x).tolist() == [2, 4]
    x.clear_grad()
    assert f(x).tolist() == [2, 4]
    with pytest.warns(FallbackWarning, match="the gradient of the argument `x` is used, which it had before the call"):
        assert f(x).tolist() == [4, 8]


def test_an_argument_that_the_function_makes_a_leaf():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        x.stop_gradient = False
        (x * x).sum().backward()

    x = tensor(1, 2)
    f(x)
    assert not x.stop_gradient
    assert x.grad.tolist() == [2, 4]


def test_leaves_that_the_function_makes():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        z = paddle.zeros([2])
        z.stop_gradient = False
        k = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        ((x - z) * k).sum().backward()
        return z.grad, k.grad

    z, k = f(tensor(3, 4))
    assert z.tolist() == [-1, -2]
    assert k.tolist() == [3, 4]


def test_a_derivative_that_goes_back_to_an_earlier_turn_is_refused():
    w = tensor(1, needs=True)

    def f(x):
        loss = (w * x).sum()
        while loss < 10:
            loss.backward()
            loss = loss * 2 + w.sum()
        return loss

    with pytest.raises(StructureError, match="inside of a loop goes back to what an earlier turn computed"):
        paddle.jit.to_static(f, full_graph=True)(tensor(1))


def test_hooks_of_tensors_are_refused():
    w = tensor(1, 2, needs=True)

    def inside(x):
        y = w * x
        y.register_hook(lambda g: g * 3)
        y.sum().backward()

    def outside(x):
        (w * x).sum().backward()

    with pytest.raises(TraceError, match=r"register_hook\(\) inside of a function of Programs"):
        paddle.jit.to_static(inside, full_graph=True)(tensor(1, 1))
    w.register_hook(lambda g: g * 3)
    with pytest.raises(TraceError, match="passes by the hook of a tensor"):
        paddle.jit.to_static(outside, full_graph=True)(tensor(1, 1))
    with pytest.warns(FallbackWarning):
        paddle.jit.to_static(outside)(tensor(1, 1))
    assert w.grad.tolist() == [3, 3]


@pytest.mark.parametrize("of_state", [True, False])
@pytest.mark.parametrize("pulled", [lambda y, w: paddle.grad(y, w)[0], lambda y, w: y.backward() or w.grad * 1.0])
def test_hooks_that_come_after_the_first_call_are_seen(of_state, pulled):
    w = tensor(1, 2, needs=True)

    def of_argument(w):
        return pulled((w * w).sum(), w)

    function, arguments = (lambda: of_argument(w), ()) if of_state else (of_argument, (w,))
    static = paddle.jit.to_static(function)

    def called():
        w.grad = None
        return static(*arguments).tolist()

    assert [called() for _ in range(4)] == [[2, 4]] * 4
    hook = w.register_hook(lambda dw: dw * 3)
    with pytest.warns(FallbackWarning, match="passes by the hook of a tensor"):
        assert called() == [6, 12]
    assert called() == [6, 12]
    hook.remove()
    assert [called() for _ in range(3)] == [[2, 4]] * 3


def test_freezing_a_tensor_from_outside_falls_back():
    w = tensor(1, 2, needs=True)

    @paddle.jit.to_static
    def f(x):
        w.stop_gradient = True
        return w * x

    with pytest.warns(FallbackWarning, match="stop_gradient of a tensor from outside is changed"):
        assert f(tensor(1, 1)).stop_gradient
    assert w.stop_gradient


@pytest.mark.parametrize("stop", [True, False])
def test_freezing_a_tensor_in_a_branch_falls_back(stop):
    """It was frozen on the other way, too: that had no gradient."""

    def f(x, t):
        y = x * 2.0
        if t > 0:
            y.stop_gradient = stop
        return y * x, y.stop_gradient

    def called(function, t):
        x = tensor(1, 2, needs=stop)
        y, stopped = function(x, tensor(t))
        if not y.stop_gradient:
            y.sum().backward()
        return y.stop_gradient, stopped, None if x.grad is None else x.grad.tolist()

    static = paddle.jit.to_static(f)
    with pytest.warns(FallbackWarning, match="stop_gradient of a tensor is changed in a branch"):
        assert called(static, 1.0) == called(f, 1.0)
    assert called(static, -1.0) == called(f, -1.0)


def test_freezing_what_a_branch_makes_is_part_of_the_program():
    def f(x, t):
        y = x
        if t > 0:
            y = x * 2.0
            y.stop_gradient = True
        return x + y

    for call in (f, paddle.jit.to_static(f, full_graph=True)):
        for t, expected in ((1.0, [1.0, 1.0]), (-1.0, [2.0, 2.0])):
            x = tensor(1, 2, needs=True)
            call(x, tensor(t)).sum().backward()
            assert x.grad.tolist() == expected


def test_an_input_that_only_an_untaken_branch_used_has_no_gradient():
    @paddle.jit.to_static(full_graph=True)
    def f(x, y):
        z = x * 2 if x.sum() > 0 else y * 3
        first, second = paddle.grad(z.sum(), [x, y], allow_unused=True)
        if second is None:
            second = paddle.full([1], -1.0)
        return first, second

    first, second = f(tensor(1, needs=True), tensor(2, needs=True))
    assert first.tolist() == [2]
    assert second.tolist() == [-1]
    first, second = f(tensor(-1, needs=True), tensor(2, needs=True))
    assert first is None
    assert second.tolist() == [3]


def test_a_complex_input_that_only_an_untaken_branch_used_has_no_gradient():
    def eager(x, y):
        z = x * 2j if x.real().sum() > 0 else y * 3j
        return paddle.grad(z.real().sum(), [x, y], allow_unused=True)

    f = paddle.jit.to_static(eager, full_graph=True)
    for value in (1, -1):
        inputs = [paddle.to_tensor(np.array([v], "complex64"), stop_gradient=False) for v in (value, 2)]
        found, expected = f(*inputs), eager(*inputs)
        assert [g is None for g in found] == [g is None for g in expected]
        assert [g.tolist() for g in found if g is not None] == [g.tolist() for g in expected if g is not None]


def reads_the_last(x, n):
    steps, slopes = [x * 1.0], x * 0.0
    for _ in range(n):
        step = steps[-1] * x
        slopes = slopes + paddle.grad(step.sum(), [x], retain_graph=True)[0]
        steps.append(step)
    return slopes


def reads_the_last_in_a_branch(x, n):
    steps, slopes = [x * 1.0], x * 0.0
    for _ in range(n):
        step = x * 1.0
        if x.sum() > 0:
            step = steps[-1] * x
            slopes = slopes + paddle.grad(step.sum(), [x], retain_graph=True)[0]
        steps.append(step)
    return slopes


def goes_back_to_the_first(x, n):
    steps, slopes = [x * 1.0], x * 0.0
    for i in range(n):
        step = steps[-1] * x
        if i > 0:
            found = paddle.grad(step.sum(), [steps[0]], retain_graph=True, allow_unused=True)[0]
            slopes = slopes + (0.0 if found is None else found)
        steps.append(step)
    return slopes


def reads_one_or_none(x, n):
    best, slopes = None, x * 0.0
    for _ in range(n):
        step = x * 2.0 if best is None else best * x
        slopes = slopes + paddle.grad(step.sum(), [x], retain_graph=True)[0]
        best = step
    return slopes


def reads_data_of_earlier_turns(x, n):
    data, slopes = [paddle.to_tensor([1.0, 2.0])], x * 0.0
    for _ in range(n):
        step = data[-1] * x
        slopes = slopes + paddle.grad(step.sum(), [x], retain_graph=True)[0]
        data.append(data[-1] * 2.0)
    return slopes


@pytest.mark.parametrize(
    ("function", "refused"),
    [(reads_the_last, True), (reads_the_last_in_a_branch, True), (goes_back_to_the_first, True),
     (reads_one_or_none, True), (reads_data_of_earlier_turns, False)],
)  # fmt: skip
def test_derivatives_through_lists_of_earlier_turns_are_those_of_eager(function, refused):
    x = paddle.to_tensor([0.5, 0.6], stop_gradient=False)
    turns = paddle.to_tensor(3)
    if refused:
        with pytest.raises(StructureError, match="inside of a loop goes back to what an earlier turn computed"):
            paddle.jit.to_static(function, full_graph=True)(x, turns)
        with pytest.warns(FallbackWarning, match="goes back to what an earlier turn computed"):
            found = paddle.jit.to_static(function)(x, turns)
    else:
        found = paddle.jit.to_static(function, full_graph=True)(x, turns)
    np.testing.assert_allclose(found.numpy(), function(x, turns).numpy(), rtol=1e-6)


@pytest.mark.parametrize("late", [False, True], ids=["at once", "after other calls"])
def test_a_parameter_and_its_optimizer_that_are_both_arguments(late):
    def step(weight, optimizer, x):
        ((x * weight) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)

    def weights(function):
        w, other = paddle.create_parameter([2], "float32"), paddle.create_parameter([2], "float32")
        for p in (w, other):
            p.set_value(tensor(1, 2))
        sgd = paddle.optimizer.SGD(0.1, parameters=[w])
        for _ in range(3):
            function(other if late else w, sgd, tensor(1, 1))
            other.clear_gradient()
        for _ in range(3):
            function(w, sgd, tensor(1, 1))
        return w.tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        found = weights(paddle.jit.to_static(step))
    assert found == pytest.approx(weights(step))
