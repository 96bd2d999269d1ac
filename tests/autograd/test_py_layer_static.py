"""PyLayers inside of `to_static`: one Program with the user's backward in it, equal to eager to any order."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue

PyLayer = paddle.autograd.PyLayer


def tensor(x):
    return paddle.to_tensor(np.asarray(x, dtype="float64"), stop_gradient=False)


class Tenfold(PyLayer):
    """A cube whose backward says ten times the gradient, so that it is seen whose backward ran."""

    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * 30 * x * x * ctx.scale


class Clipped(PyLayer):
    """The identity whose gradient is clipped: not linear in the gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, dy):
        return paddle.clip(dy, -1.0, 1.0)


class Swap(PyLayer):
    """Two inputs, two results, one of them without a gradient of its own."""

    @staticmethod
    def forward(ctx, a, b, flag=False):
        ctx.save_for_backward(a, b)
        return [b * 2, a > 0, a * b]

    @staticmethod
    def backward(ctx, first, _, product):
        a, b = ctx.saved_tensor()
        return product * b * 3, first * 5 + product * a


class OfOutput(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * y * 2


class Masked(PyLayer):
    """What backward needs stands in attributes; a branch in forward; gradients whose extents come from broadcasting."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.mask, ctx.both = x > 0, [x, w]
        if x.sum() > 100:
            return x * 0
        return paddle.where(ctx.mask, x * w, x * 0)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.both
        return paddle.where(ctx.mask, dy * w, dy * 0), (dy * x * ctx.mask.astype(dy.dtype)).sum().reshape([1])


class Reversed(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, dy):
        return -dy


def in_a_loop(x):
    w = x.abs().sum().reshape([1]) / 8
    for _ in range(3):
        x = Masked.apply(x, w) + Reversed.apply(x) * x
    return x


def branchy(x):
    y = x
    while y.sum() < 50:
        if y.sum() > 3:
            y = Tenfold.apply(y, 0.5)
        else:
            y = y + paddle.exp(x)
    return y


FUNCTIONS = {
    "one": lambda x: Tenfold.apply(x, scale=2.0),
    "twice": lambda x: Tenfold.apply(Tenfold.apply(x)) + x,
    "clipped": lambda x: Clipped.apply(x) * x * 7,
    "several": lambda x: sum(t.astype("float64") for t in Swap.apply(x * 2, paddle.sin(x))),
    "unused result": lambda x: Swap.apply(x * 2, paddle.sin(x))[2],
    "saved output": lambda x: OfOutput.apply(x * x),
    "control flow": branchy,
    "attributes": in_a_loop,
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_eager_and_static_agree_to_the_second_order(f):
    static = paddle.jit.to_static(f, full_graph=True)
    found = []
    for run in (f, static):
        x = tensor([1.0, 0.5, -0.25])
        y = run(x)
        (g,) = paddle.grad([y.sum()], [x], create_graph=True)
        (h,) = paddle.grad([(g * g).sum()], [x], retain_graph=True)
        y.sum().backward()
        found.append([t.numpy() for t in (y, g, h, x.grad)])
    for eager, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, eager, rtol=1e-10)
    static(tensor([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert len(static.program_cache) == 1


def test_a_whole_training_step_is_one_program():
    def train(static):
        paddle.seed(0)
        net = paddle.nn.Linear(2, 1)
        optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())

        def step(x):
            loss = (Clipped.apply(net(x)) ** 2).mean() + Tenfold.apply(net.weight).sum() / 100
            loss.backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
            return loss

        run = paddle.jit.to_static(step, full_graph=True) if static else step
        losses = [float(run(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]))) for _ in range(5)]
        return losses, net.weight.numpy()

    (losses, weight), (want_losses, want) = train(True), train(False)
    assert losses == pytest.approx(want_losses, rel=1e-5)
    np.testing.assert_allclose(weight, want, rtol=1e-5)


def test_a_loaded_program_has_the_backward_too(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            return branchy(x)

    spec = paddle.static.InputSpec([None], "float64")
    paddle.jit.save(paddle.jit.to_static(Net(), input_spec=[spec], full_graph=True), str(tmp_path / "net"))
    loaded, gradients = paddle.jit.load(str(tmp_path / "net")), []
    for run in (loaded, branchy):
        x = tensor([1.0, 0.5])
        run(x).sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-10)


def test_an_input_that_was_not_used_has_no_gradient():
    @paddle.jit.to_static(full_graph=True)
    def f(x, y):
        z = y * 2
        if x.sum() > 0:
            z = Tenfold.apply(x)
        return z

    for value, which in ((1.0, 0), (-1.0, 1)):
        inputs = [tensor([value]), tensor([1.0])]
        f(*inputs).backward()
        assert [t.grad is not None for t in inputs] == [which == 0, which == 1]


def test_without_gradients_forward_is_all():
    static = paddle.jit.to_static(lambda x: Tenfold.apply(x), full_graph=True)
    y = static(paddle.to_tensor([2.0]))
    assert (float(y), y.stop_gradient) == (8.0, True)
    assert "with_gradient" not in str(static.concrete_program.main_program)


def test_the_context_is_new_for_each_call():
    static = paddle.jit.to_static(lambda x: Tenfold.apply(x, 2.0) + Tenfold.apply(x, 3.0), full_graph=True)
    for value in (1.0, 2.0):
        x = tensor([value])
        static(x).backward()
        assert float(x.grad) == 5 * 30 * value**2


def refusing(backward, **options):
    class Refusing(PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            for name, value in options.items():
                getattr(ctx, name)(value)
            return x * 2

    Refusing.backward = staticmethod(backward)
    return Refusing


def branches(ctx, dy):
    if dy.sum() > 0:
        dy = dy * 3
    return dy * 2


def prints(ctx, dy):
    print("back", dy)
    return dy * 2


def counts(ctx, dy):
    ctx.calls = 1
    return dy * 2


def draws(ctx, dy):
    return dy * (paddle.rand([1], dtype="float64") * 0 + 2)


def raises(ctx, dy):
    return {}["missing"]


REFUSED = {
    "branches": (branches, "it does more than arithmetic"),
    "prints": (prints, "it does more than arithmetic"),
    "counts": (counts, "it changes something besides computing gradients"),
    "draws": (draws, "it changes something besides computing gradients"),
    "raises": (raises, "it raises KeyError"),
    "too many": (lambda ctx, dy: (dy, dy), "it gives 2 gradients for 1 tensors"),
    "no tensor": (lambda ctx, dy: 3.0, "it gives float for a float64"),
    "another shape": (lambda ctx, dy: dy.sum(), r"it gives float64\[\] for a float64\[x_0\]"),
}


@pytest.mark.parametrize(("backward", "why"), REFUSED.values(), ids=REFUSED)
def test_a_backward_that_is_more_than_arithmetic_is_refused(backward, why):
    layer = refusing(backward)
    static = paddle.jit.to_static(lambda x: layer.apply(x), full_graph=True)
    with pytest.raises(NeedsPythonValue, match=f"its backward cannot be part of a Program: {why}"):
        static(tensor([1.0, 2.0]))


def test_extents_that_only_the_run_tells_are_compared_there():
    layer = refusing(lambda ctx, dy: paddle.masked_select(dy, dy > 0))
    static = paddle.jit.to_static(lambda x: layer.apply(x), full_graph=True)
    x = tensor([1.0, 2.0])
    static(x).backward(tensor([1.0, 1.0]))
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError, match=r"Refusing.backward: a gradient has another shape"):
        static(x).backward(tensor([1.0, -1.0]))


def test_gradients_that_are_none_are_refused():
    layer = refusing(lambda ctx, dy: dy * 2, set_materialize_grads=False)
    static = paddle.jit.to_static(lambda x: layer.apply(x), full_graph=True)
    with pytest.raises(NeedsPythonValue, match="it asks for None in place of gradients that are zero"):
        static(tensor([1.0]))


@pytest.mark.parametrize("backward", [branches, counts], ids=["branches", "counts"])
def test_what_is_refused_runs_eagerly(backward):
    layer = refusing(backward)

    @paddle.jit.to_static
    def f(x):
        return layer.apply(x)

    x = tensor([1.0, 2.0])
    with pytest.warns(UserWarning, match="the PyLayer Refusing was called"):
        y = f(x)
    y.sum().backward()
    assert x.grad.tolist() == ([6.0, 6.0] if backward is branches else [2.0, 2.0])
