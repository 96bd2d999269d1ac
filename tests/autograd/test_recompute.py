"""`recompute`: the same values, gradients and random numbers as without it, less kept; and what it refuses."""

import gc
import weakref

import numpy as np
import pytest

import dy2st as paddle
from dy2st.distributed.fleet.utils import recompute
from dy2st.errors import AutodiffError


def tensor(x, **options):
    return paddle.to_tensor(np.asarray(x, dtype="float64"), stop_gradient=False, **options)


@pytest.fixture
def net():
    paddle.seed(3)
    layers = paddle.nn
    return layers.Sequential(layers.Linear(3, 8), layers.Tanh(), layers.Dropout(0.4), layers.Linear(8, 2))


def gradients(net, run):
    """What a step with a gradient penalty gives."""
    paddle.seed(1)
    net.clear_gradients()
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(4, 3)).astype("float32"), stop_gradient=False)
    y = run(x)
    (slope,) = paddle.grad([y.sum()], [x], create_graph=True)
    ((slope**2).sum() + (y**2).sum()).backward()
    after = paddle.rand([2])
    return [t.numpy() for t in (y, slope, x.grad, *(p.grad for p in net.parameters()), after)]


def test_everything_is_as_without_it(net):
    want = gradients(net, net)
    for use_reentrant in (True, False):
        got = gradients(net, lambda x: recompute(net, x, use_reentrant=use_reentrant))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_a_static_layer_inside(net):
    static = paddle.jit.to_static(net, full_graph=True)
    want = gradients(net, static)
    for a, b in zip(gradients(net, lambda x: recompute(static, x)), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_under_to_static_it_is_the_call():
    def f(x):
        if x.sum() > 0:
            return paddle.exp(x)
        return x * 2

    static = paddle.jit.to_static(lambda x: recompute(f, x).sum(), full_graph=True)
    for value, slope in ((1.0, np.e), (-1.0, 2.0)):
        x = tensor([value])
        static(x).backward()
        assert float(x.grad) == pytest.approx(slope)
    assert len(static.program_cache) == 1


def counted(f):
    calls = []

    def run(*args, **keywords):
        calls.append(1)
        return f(*args, **keywords)

    return run, calls


def test_the_function_runs_once_more_for_all_gradients():
    f, calls = counted(lambda x: paddle.sin(paddle.exp(paddle.sin(x))))
    y = recompute(f, tensor([1.0, 2.0]))
    assert len(calls) == 1
    y.sum().backward()
    assert len(calls) == 2


def test_without_gradients_it_runs_once():
    f, calls = counted(paddle.sin)
    with paddle.no_grad():
        y = recompute(f, tensor([1.0]))
    assert y.stop_gradient
    recompute(f, paddle.to_tensor([1.0]))
    assert len(calls) == 2


def test_a_second_backward_runs_it_again():
    f, calls = counted(lambda x: paddle.sin(x) * paddle.exp(x))
    x = tensor([1.0])
    y = recompute(f, x)
    y.backward(retain_graph=True)
    once = float(x.grad)
    y.backward()
    assert float(x.grad) == pytest.approx(2 * once)
    assert len(calls) == 3


def test_intermediate_values_are_not_kept():
    kept = []

    def f(x):
        middle = paddle.sin(x)
        kept.append(weakref.ref(middle.payload))
        return paddle.exp(middle)

    x = tensor(np.ones(1000))
    y = recompute(f, x)
    gc.collect()
    assert kept[0]() is None
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(np.sin(1)) * np.cos(1))
    gc.collect()
    assert kept[1]() is None


def test_one_in_another():
    def inner(x):
        return paddle.sin(x) * x

    x = tensor([0.7])
    recompute(lambda t: paddle.exp(recompute(inner, t)), x).backward()
    want = np.exp(np.sin(0.7) * 0.7) * (np.cos(0.7) * 0.7 + np.sin(0.7))
    assert float(x.grad) == pytest.approx(want)


def test_gradients_inside_of_the_function():
    def f(x):
        (slope,) = paddle.grad([paddle.sin(x)], [x], create_graph=True)
        return slope * x

    x = tensor([0.7])
    recompute(f, x).backward()
    assert float(x.grad) == pytest.approx(-np.sin(0.7) * 0.7 + np.cos(0.7))


def test_several_arguments_keywords_and_results():
    def f(pair, scale=1.0, *, shift):
        return {"a": pair[0] * pair[1] * scale, "b": [paddle.exp(shift)]}

    x, y, s = tensor([2.0]), tensor([3.0]), tensor([0.5])
    out = recompute(f, [x, y], scale=4.0, shift=s)
    (out["a"] + out["b"][0]).backward()
    assert [float(t.grad) for t in (x, y, s)] == pytest.approx([12.0, 8.0, np.exp(0.5)])


def test_random_numbers_may_differ_on_request():
    paddle.seed(5)
    masks = []

    def f(x):
        masks.append(paddle.rand([8]))
        return (paddle.exp(x) * masks[-1]).sum()

    for preserve in (True, False):
        recompute(f, tensor(1.0).astype("float32"), preserve_rng_state=preserve).backward()
        first, second = masks[-2:]
        assert bool((first == second).all()) is preserve


def test_a_function_that_does_something_else_the_second_time():
    turns = []

    def f(x):
        turns.append(1)
        for _ in turns:
            x = paddle.sin(x)
        return x

    y = recompute(f, tensor([1.0]))
    with pytest.raises(AutodiffError, match="kept 1 values for its gradients the first time, and 2 the second time"):
        y.backward()


def test_an_argument_that_was_overwritten():
    x = tensor([1.0]) * 1.0
    y = recompute(lambda t: paddle.exp(paddle.sin(t)) * 2, x)
    x[...] = 3.0
    with pytest.raises(AutodiffError, match="was changed in place after"):
        y.backward()


def test_what_is_not_callable():
    with pytest.raises(TypeError, match="recompute: function must be callable, not int"):
        recompute(3, tensor([1.0]))


def test_an_error_in_the_function_leaves_nothing_behind():
    def f(x):
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        recompute(f, tensor([1.0]))
    f, calls = counted(paddle.sin)
    y = f(tensor([1.0]))
    y.backward()
    assert len(calls) == 1
