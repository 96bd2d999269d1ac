"""A loaded Program is differentiated like a fresh one: every mode, order 2, over lanes."""

import numpy as np
import pytest

import dy2st as paddle

AG = paddle.incubate.autograd


class Net(paddle.nn.Layer):
    """Branches, a loop of unknown length, a list."""

    def __init__(self):
        super().__init__()
        self.inner = paddle.nn.Linear(3, 3)

    def forward(self, x):
        kept = []
        if x.sum() > 0:
            y = self.inner(x)
        else:
            y = paddle.exp(x)
        while (y * y).sum() < 30:
            y = y * 1.5 + paddle.tanh(x)
            kept.append(y)
        return y * len(kept) + (paddle.stack(kept).sum(0) if len(kept) > 0 else x)


MODES = {
    "reverse": lambda f, x: AG.vjp(f, x)[1],
    "forward": lambda f, x: AG.jvp(f, x)[1],
    "taylor": lambda f, x: AG.jet(f, x, order=3)[1],
    "jacobian": lambda f, x: AG.Jacobian(f, x)[:],
    "reverse over reverse": lambda f, x: AG.Hessian(lambda x: (f(x) ** 2).sum(), x)[:],
    "reverse over forward": lambda f, x: AG.vjp(lambda x: AG.jvp(f, x)[1], x)[1],
    "forward over reverse": lambda f, x: AG.jvp(lambda x: AG.vjp(f, x)[1], x)[1],
    "vmap": lambda f, x: paddle.vmap(f)(paddle.stack([x, -x, x * 4])),
    "vmap of reverse": lambda f, x: paddle.vmap(lambda x: AG.vjp(f, x)[1])(paddle.stack([x, -x, x * 4])),
    "reverse over vmap": lambda f, x: AG.vjp(paddle.vmap(f), paddle.stack([x, -x, x * 4]))[1],
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A network as it was written, and as it was loaded."""
    paddle.seed(0)
    net, path = Net(), str(tmp_path_factory.mktemp("saved") / "net")
    net.to(dtype="float64")
    paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None], "float64")])
    return net, paddle.jit.load(path)


def flat(found):
    return np.concatenate([np.ravel(one.numpy()) for one in (found if isinstance(found, (list, tuple)) else [found])])


@pytest.mark.parametrize("at", [[0.3, -0.1, 0.5], [-0.3, -0.4, 0.1]])
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_loaded_program_has_the_derivatives_of_the_function(pair, mode, at):
    net, loaded = pair
    x = paddle.to_tensor(np.array(at))
    np.testing.assert_allclose(flat(mode(loaded, x)), flat(mode(net, x)), rtol=1e-9, atol=1e-9)


def test_the_parameters_have_the_same_gradients(pair):
    x = paddle.to_tensor(np.array([0.3, -0.1, 0.5]))
    found = []
    for one in pair:
        first = paddle.grad((one(x) ** 2).sum(), one.parameters(), create_graph=True)
        found.append([*first, *paddle.grad(sum((g * g).sum() for g in first), one.parameters())])
    for ours, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=1e-9)
