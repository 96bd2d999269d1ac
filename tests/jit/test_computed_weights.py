"""Weights that are no parameters: tensors that a function or a hook sets, and that layers of the library then read."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn


class Scaled:
    """A hook that computes a layer's weight from a parameter and an estimate that each call in training improves."""

    def __init__(self, layer):
        weight = layer._parameters.pop("weight")
        layer.add_parameter("weight_orig", weight)
        layer.weight = weight * 1.0
        layer.register_buffer("estimate", paddle.ones([weight.shape[0]]))
        layer.register_forward_pre_hook(self)

    def __call__(self, layer, inputs):
        rows = layer.weight_orig.reshape([layer.weight_orig.shape[0], -1])
        if layer.training:
            with paddle.no_grad():
                better = rows @ (layer.estimate @ rows)
                layer.estimate.set_value(better / better.norm())
        layer.weight = layer.weight_orig / ((layer.estimate.clone() @ rows).norm() + 0.5)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Conv2D(3, 4, 3), nn.Conv2D(4, 2, 1), nn.Linear(2, 2)
        for layer in (self.first, self.second, self.last):
            Scaled(layer)

    def forward(self, x):
        y = self.last(self.second(self.first(x)).mean([2, 3]))
        return y * next(iter(self.last.parameters())).sum()


def step(net, call, x):
    net.clear_gradients()
    y = call(x)
    y.sum().backward()
    return [y.numpy(), *(p.grad.numpy() for p in net.parameters() if p.grad is not None)]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_hooks_that_compute_weights(mode, tmp_path):
    net, x = Net(), paddle.rand([2, 3, 6, 6])
    getattr(net, mode)()
    before = {name: t.numpy().copy() for name, t in net.state_dict().items()}
    wanted = [step(net, net, x) for _ in range(3)]
    state = {name: t.numpy().copy() for name, t in net.state_dict().items()}
    for full_graph in (False, True):
        net.set_state_dict(before)
        static = paddle.jit.to_static(lambda x: net(x), full_graph=full_graph)
        for want in wanted:
            for here, there in zip(step(net, static, x), want, strict=True):
                np.testing.assert_allclose(here, there, rtol=1e-4, atol=1e-6)
        assert len(static.program_cache) == 1
        for name, t in net.state_dict().items():
            np.testing.assert_allclose(t.numpy(), state[name], rtol=1e-5)
    net.eval()
    paddle.jit.save(net, str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([None, 3, 6, 6], "float32")])
    np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "net"))(x).numpy(), net(x).numpy(), rtol=1e-4)


def test_what_the_function_set_is_read_and_not_what_was_there():
    conv = nn.Conv2D(1, 1, 1, bias_attr=False)
    kernel = conv._parameters.pop("weight")
    kernel.set_value(paddle.ones([1, 1, 1, 1]))

    def twice(x):
        conv.weight = kernel * 2.0
        y = conv(x)
        conv.weight = kernel * 3.0
        return y + 10 * conv(x)

    x = paddle.ones([1, 1, 2, 2])
    assert paddle.jit.to_static(twice, full_graph=True)(x).tolist() == twice(x).tolist() == [[[[32.0] * 2] * 2]]
    assert conv.weight.item() == 3.0


def test_a_weight_that_one_branch_sets():
    linear = nn.Linear(2, 2, bias_attr=False)
    kernel = linear._parameters.pop("weight")
    linear.weight = kernel * 1.0

    def chosen(x):
        if x.sum() > 0:
            linear.weight = kernel * 2.0
            y = linear(x)
        else:
            y = linear(x) - 1.0
        return y, linear(x)

    static = paddle.jit.to_static(chosen, full_graph=True)
    for sign in (1.0, -1.0):
        x = paddle.full([1, 2], sign)
        linear.weight = kernel * 1.0
        wanted = chosen(x)
        linear.weight = kernel * 1.0
        for here, there in zip(static(x), wanted, strict=True):
            np.testing.assert_allclose(here.numpy(), there.numpy(), rtol=1e-6)


def test_a_weight_that_a_loop_sets():
    linear = nn.Linear(2, 2, bias_attr=False)
    kernel = linear._parameters.pop("weight")
    linear.weight = kernel * 1.0

    def grown(x, n):
        for _ in range(n):
            linear.weight = linear.weight * 1.5
            x = linear(x)
        return x

    n, x = paddle.to_tensor(3), paddle.rand([2, 2])
    wanted = grown(x, n)
    linear.weight = kernel * 1.0
    np.testing.assert_allclose(paddle.jit.to_static(grown, full_graph=True)(x, n).numpy(), wanted.numpy(), rtol=1e-5)


def test_a_weight_set_between_calls_is_seen():
    linear = nn.Linear(2, 2, bias_attr=False)
    kernel = linear._parameters.pop("weight")
    static = paddle.jit.to_static(lambda x: linear(x), full_graph=True)
    x = paddle.rand([3, 2])
    for factor in (1.0, 2.0, 5.0):
        linear.weight = kernel * factor
        np.testing.assert_allclose(static(x).numpy(), (x @ kernel * factor).numpy(), rtol=1e-5)
