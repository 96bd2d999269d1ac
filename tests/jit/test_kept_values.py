"""What the forward part of a Program keeps for its derivative stays in native memory, as long as the graph is there."""

import gc
import threading

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.errors import AutodiffError
from dy2st.runtime.backends.cpu.python_abi.kept_values import CAPSULE, opened

pytestmark = pytest.mark.one_tier("looks at what native code keeps")


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def w_of(size=4):
    w = paddle.to_tensor(np.linspace(-0.5, 0.5, size * size, dtype="float32").reshape(size, size))
    w.stop_gradient = False
    return w


def x_of(size=4, rows=3):
    return paddle.to_tensor(np.linspace(-1, 1, rows * size, dtype="float32").reshape(rows, size))


def looping(x, w):
    """Keep lists of tensors."""
    i = paddle.to_tensor(0)
    while i < 5:
        x = F.tanh(x @ w)
        i = i + 1
    return x


def nested(x, w):
    """Keep lists of lists."""
    i = paddle.to_tensor(0)
    while i < 3:
        j = paddle.to_tensor(0)
        while j < i + 1:
            x = F.tanh(x @ w)
            j = j + 1
        i = i + 1
    return x


def branching(x, w):
    """Keep lists of what may not be there."""
    i = paddle.to_tensor(0)
    while i < 5:
        if x.sum() > 0:
            x = F.tanh(x @ w) - 0.1
        else:
            x = F.sigmoid(x @ w)
        i = i + 1
    return x


def one_branch(x, w):
    """Keep what may not be there."""
    return F.tanh(x @ w) if x.sum() > 0 else x * w.sum()


def of_inputs(x, w):
    """Keep what stands in the memory of an input."""
    kept = [x]
    i = paddle.to_tensor(0)
    while i < 3:
        kept.append(x * i)
        i = i + 1
    total = x.sum() * 0
    for one in kept:
        total = total + (one @ w).sum() * one.sum()
    return total


ALL = [looping, nested, branching, one_branch, of_inputs]


def eager(function, order=1):
    x, w = x_of(), w_of()
    x.stop_gradient = False
    loss = (function(x, w) ** 2).sum()
    for _ in range(order - 1):
        loss = sum((g**2).sum() for g in paddle.grad(loss, [x, w], create_graph=True))
    return [g.numpy() for g in paddle.grad(loss, [x, w])]


def kept(t):
    return [v for v in t.tape_node.results if type(v) is CAPSULE]


@pytest.mark.parametrize("function", ALL)
def test_gradients_are_those_of_eager_mode(function):
    f, want = paddle.jit.to_static(function, full_graph=True), eager(function)
    for _ in range(3):
        x, w = x_of(), w_of()
        x.stop_gradient = False
        y = f(x, w)
        for got, expected in zip(paddle.grad((y**2).sum(), [x, w]), want, strict=True):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [looping, nested, branching, one_branch])
def test_what_is_kept_is_opaque_and_can_be_read(function):
    y = paddle.jit.to_static(function, full_graph=True)(x_of(), w_of())
    assert kept(y)
    types = y.tape_node.source.pullback.forward.result_types
    for value in opened(types, y.tape_node.results):
        assert type(value) is not CAPSULE


@pytest.mark.parametrize("function", [looping, nested, branching])
def test_a_graph_that_is_kept_is_walked_as_often_as_one_likes(function):
    w = w_of()
    y = paddle.jit.to_static(function, full_graph=True)(x_of(), w).sum()
    y.backward(retain_graph=True)
    first = w.grad.numpy().copy()
    for _ in range(3):
        w.clear_grad()
        y.backward(retain_graph=True)
        np.testing.assert_allclose(w.grad.numpy(), first, rtol=1e-5, atol=1e-6)
    y.backward()
    with pytest.raises(AutodiffError, match="freed"):
        y.backward()


@pytest.mark.parametrize("function", [looping, nested, branching, one_branch])
def test_second_derivatives(function):
    f, want = paddle.jit.to_static(function, full_graph=True), eager(function, 2)
    for _ in range(2):
        x, w = x_of(), w_of()
        x.stop_gradient = False
        inner = paddle.grad((f(x, w) ** 2).sum(), [x, w], create_graph=True)
        got = paddle.grad(sum((g**2).sum() for g in inner), [x, w])
        for one, expected in zip(got, want, strict=True):
            np.testing.assert_allclose(one.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("function", [looping, nested, branching, one_branch])
def test_jacobians_and_hessians(function):
    """Rows at once read one kept value."""
    found = []
    for f in (function, paddle.jit.to_static(function, full_graph=True)):
        x = paddle.to_tensor(np.linspace(-1, 1, 12, dtype="float32"))
        x.stop_gradient = False
        y = f(x.reshape([3, 4]), w_of()).reshape([-1])
        found.append((paddle.autograd.jacobian(y, x)[:].numpy(), paddle.autograd.hessian((y**2).sum(), x)[:].numpy()))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_hooks_see_gradients():
    w, seen = w_of(), []
    y = paddle.jit.to_static(looping, full_graph=True)(x_of(), w)
    y.register_hook(lambda g: seen.append(g.shape) or g * 2)
    y.sum().backward()
    assert seen == [[3, 4]]
    np.testing.assert_allclose(w.grad.numpy(), 2 * _gradient(looping), rtol=1e-5, atol=1e-6)


def _gradient(function):
    w = w_of()
    function(x_of(), w).sum().backward()
    return w.grad.numpy()


def test_an_input_may_be_overwritten_before_the_way_back():
    """An element that stands in an input's memory is a copy of its own, unless eager mode would refuse."""
    f = paddle.jit.to_static(lambda x, w: looping(x * 1, w), full_graph=True)
    x, w = x_of(), w_of()
    y = f(x, w).sum()
    x.set_value(np.zeros((3, 4), np.float32))
    y.backward()
    np.testing.assert_allclose(w.grad.numpy(), _gradient(looping), rtol=1e-5, atol=1e-6)


def test_many_graphs_live_at_once_and_their_memory_comes_back():
    f, w = paddle.jit.to_static(looping, full_graph=True), w_of()
    want = _gradient(looping)
    for _ in range(2):
        ys = [f(x_of(), w) for _ in range(100)]
        assert all(map(kept, ys))
        for y in ys:
            w.clear_grad()
            y.sum().backward()
            np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-5, atol=1e-6)


def _plan(y):
    """Return the native code that made a result with what it keeps."""
    runner = y.tape_node.source.pullback.forward.runner(np)
    return runner.native.latest or runner.native.plans[0]


def test_a_thousand_calls_take_the_contexts_of_one():
    f, w = paddle.jit.to_static(nested, full_graph=True), w_of(16)
    x = x_of(16)
    plan = _plan(f(x, w))
    for _ in range(1000):
        f(x, w).sum().backward()
    assert len(plan._contexts) <= 3
    assert plan._plate[0] == len(plan._contexts)
    assert sum(context._memory[104 // 8] for context in plan._contexts.values()) == 0  # nobody holds a block


def test_memory_is_given_back_where_the_graph_goes_without_a_way_back():
    f = paddle.jit.to_static(branching, full_graph=True)
    y = f(x_of(), w_of())
    plan = _plan(y)
    free = int(plan._plate[0])
    del y
    gc.collect()
    assert plan._plate[0] == free + 1


def test_what_is_kept_outlives_the_function():
    w = w_of()
    y = paddle.jit.to_static(lambda x, w: nested(x, w), full_graph=True)(x_of(), w)
    values = kept(y)
    y.sum().backward()
    del y
    gc.collect()
    del values
    gc.collect()
    np.testing.assert_allclose(w.grad.numpy(), _gradient(nested), rtol=1e-5, atol=1e-6)


def test_an_error_behind_the_call_frees_what_was_kept():
    f, w = paddle.jit.to_static(looping, full_graph=True), w_of()
    plan = _plan(f(x_of(), w))
    free = int(plan._plate[0])
    for _ in range(5):
        with pytest.raises(ValueError, match="matmul"):
            (f(x_of(), w) @ paddle.ones([7, 7])).sum()
    gc.collect()
    assert plan._plate[0] == free


def test_threads_read_what_is_kept_at_once():
    f, w = paddle.jit.to_static(nested, full_graph=True), w_of(32)
    y = f(x_of(32), w).sum()
    want = paddle.grad(y, [w], retain_graph=True)[0].numpy()
    wrong = []

    def work():
        for _ in range(50):
            if not np.allclose(paddle.grad(y, [w], retain_graph=True)[0].numpy(), want, rtol=1e-4, atol=1e-5):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_each_call_has_its_own_extents():
    f, w = paddle.jit.to_static(nested, full_graph=True), w_of()
    ys = [f(x_of(rows=n), w) for n in (1, 2, 5)]
    for y, n in zip(ys, (1, 2, 5), strict=True):
        w.clear_grad()
        y.sum().backward()
        other = w_of()
        nested(x_of(rows=n), other).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), other.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_the_interpreter_takes_over_what_native_code_kept(monkeypatch):
    f, w = paddle.jit.to_static(branching, full_graph=True), w_of()
    y = f(x_of(), w)
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), _gradient(branching), rtol=1e-5, atol=1e-6)
