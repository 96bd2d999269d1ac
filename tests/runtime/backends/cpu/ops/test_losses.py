"""Losses, norms and soft maxima as native code: no call back into Python, and the interpreter's results."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes import optimise
from dy2st.runtime.backends.cpu.shape_specialization import ShapeSpecializations
from dy2st.runtime.interpreter.planned import compile_plan

F = paddle.nn.functional


def of(f, *inputs):
    static = paddle.jit.to_static(f, full_graph=True)
    static(*(paddle.to_tensor(x, stop_gradient=x.dtype != np.float32) for x in inputs))
    return optimise(static.concrete_program.main_program)


def compare(program, *inputs, rtol=2e-5):
    versions = ShapeSpecializations(program)
    for found, wanted in zip(versions.run(inputs), compile_plan(program).run(inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-6)
    assert [call.name for call in versions.version(inputs).host_calls] == []


def with_gradient(loss):
    def f(x, *others):
        value = loss(x, *others)
        return value, paddle.grad(value, x)[0]

    return f


LOSSES = {
    "mean": lambda x, y: F.cross_entropy(x, y),
    "sum": lambda x, y: F.cross_entropy(x, y, reduction="sum"),
    "each": lambda x, y: (F.cross_entropy(x, y, reduction="none") ** 2).sum(),
    "nll": lambda x, y: F.nll_loss(F.log_softmax(x), y),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("classes", [1, 7, 16, 100])
def test_cross_entropy(name, classes, rng):
    x, y = rng.normal(size=(5, classes)).astype("float32"), rng.integers(0, classes, 5)
    program = of(with_gradient(LOSSES[name]), x, y)
    compare(program, x, y)
    y[2] = -100
    compare(program, x, y)
    compare(program, rng.normal(size=(1, classes + 3)).astype("float32"), y[:1])


def test_cross_entropy_with_weights_of_classes(rng):
    x, y = rng.normal(size=(6, 9)).astype("float32"), rng.integers(0, 9, 6)
    w = rng.random(9).astype("float32")
    compare(of(with_gradient(lambda x, y, w: F.cross_entropy(x, y, weight=w)), x, y, w), x, y, w)


def test_cross_entropy_along_a_middle_axis(rng):
    x, y = rng.normal(size=(2, 5, 3)).astype("float32"), rng.integers(0, 5, (2, 1, 3))
    compare(of(with_gradient(lambda x, y: F.cross_entropy(x, y, axis=1)), x, y), x, y)


def test_numbers_that_are_no_class_are_the_users_error(rng):
    x, y = rng.normal(size=(4, 3)).astype("float32"), np.array([0, 1, 2, 1])
    versions = ShapeSpecializations(of(lambda x, y: F.cross_entropy(x, y), x, y))
    versions.run([x, y])
    for label in (3, -1, 2**40):
        y[1] = label
        with pytest.raises(ValueError, match=f"softmax_cross_entropy: label {label} is not one of 3 classes"):
            versions.run([x, y])


def test_scores_that_are_no_numbers_give_what_the_interpreter_gives(rng):
    x, y = rng.normal(size=(6, 20)).astype("float32"), rng.integers(0, 20, 6)
    x[0, 3], x[1, 3], x[2, 3], x[3, :] = np.nan, np.inf, -np.inf, -np.inf
    y[:4] = 3
    compare(of(lambda x, y: F.cross_entropy(x, y, reduction="none"), x, y), x, y)


SOFT = {
    "softmax": lambda x, axis: F.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: F.log_softmax(x, axis=axis),
    "logsumexp": lambda x, axis: paddle.logsumexp(x, axis=axis),
    "logsumexp_kept": lambda x, axis: paddle.logsumexp(x, axis=axis, keepdim=True),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", SOFT)
def test_soft_maxima_along_every_axis(name, axis, rng):
    x = rng.normal(size=(3, 4, 19)).astype("float32")
    loss = with_gradient(lambda x: (SOFT[name](x, axis) ** 2).sum())
    compare(of(loss, x), x, rtol=1e-4)


def test_logsumexp_of_infinities(rng):
    x = np.array([[-np.inf, -np.inf, -np.inf], [np.inf, 0, 1], [np.nan, 0, 1], [1e30, 0, -np.inf]], "float32")
    compare(of(lambda x: paddle.logsumexp(x, axis=1), x), x)
    compare(of(lambda x: paddle.logsumexp(x), x), x[[0, 3]])


@pytest.mark.parametrize("shape", [(3, 20), (1, 70), (5, 1), (0, 4)])
def test_layer_norm_with_weights_of_unknown_extent(shape, rng):
    def loss(x, w, b):
        return (F.layer_norm(x, x.shape[-1:], w, b) ** 2).sum()

    inputs = [rng.normal(size=s).astype("float32") for s in (shape, shape[1:], shape[1:])]
    program = of(with_gradient(loss), np.ones((2, 3), "float32"), np.ones(3, "float32"), np.ones(3, "float32"))
    compare(program, *inputs, rtol=2e-3)
