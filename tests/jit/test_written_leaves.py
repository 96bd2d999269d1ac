"""Parameters and arguments that a function writes in place without history: they stay the same leaves.

Reads before the write and reads after it give gradients to the one leaf, whether or not its memory was written or
viewed before the call.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn

T = paddle.to_tensor
CALLS = (([1.0, 2.0], 2), ([0.25, 0.5], 1), ([2.0, 1.0], 3), ([1.0, 0.5], 0))


def only_before(w: Any, x: Any, n: Any, change: Any) -> Any:
    y = (w * 3).sum()
    with paddle.no_grad():
        change(w, x)
    return y


def only_after(w: Any, x: Any, n: Any, change: Any) -> Any:
    with paddle.no_grad():
        change(w, x)
    return (w * x).sum() * w.sum()


def before_and_after(w: Any, x: Any, n: Any, change: Any) -> Any:
    y = (w * 3).sum()
    with paddle.no_grad():
        change(w, x)
    y = y + (w * x).sum()
    with paddle.no_grad():
        change(w, x)
    return y + (w * w).sum()


def in_a_branch(w: Any, x: Any, n: Any, change: Any) -> Any:
    y = (w * 3).sum()
    if x.sum() > 1:
        with paddle.no_grad():
            change(w, x)
    return y + (w * w * x).sum()


def in_a_loop(w: Any, x: Any, n: Any, change: Any) -> Any:
    y, i = (w * 3).sum(), 0
    while i < n:
        y = y + (w * x).sum()
        with paddle.no_grad():
            change(w, x)
        i = i + 1
    return y + (w * w * x).sum()


def beside_a_view(w: Any, x: Any, n: Any, change: Any) -> Any:
    v = w[0:1]
    with paddle.no_grad():
        change(w, x)
    return (v * 2).sum() + (w * x).sum()


def clip(w: Any, x: Any) -> None:
    w.clip_(-0.5, 0.5)


def assign(w: Any, x: Any) -> None:
    w[...] = w * 0.5
    w[0] = x[1]


def copy(w: Any, x: Any) -> None:
    w.set_value(w * 0.5)
    w.add_(x.detach() * 0.1)


class Holder(nn.Layer):
    """A layer whose parameter its forward writes."""

    def __init__(self, body: Any, change: Any) -> None:
        super().__init__()
        self.w = self.create_parameter([2])
        self.w.set_value(T([0.75, -0.5]))
        self.body, self.change = body, change

    def forward(self, x: Any, n: Any) -> Any:
        return self.body(self.w, x, n, self.change)


def trained(call: Callable[..., Any], w: Any) -> list[Any]:
    """Return losses, gradients and elements over calls between which `w` is trained."""
    found = []
    for values, n in CALLS:
        loss = call(T(values), T(n))
        loss.backward()
        found += [loss.numpy(), w.grad.numpy(), w.numpy().copy()]
        with paddle.no_grad():
            w.set_value(w - 0.1 * w.grad)
        w.clear_grad()
    return found


BODIES = (only_before, only_after, before_and_after, in_a_branch, in_a_loop, beside_a_view)


@pytest.mark.parametrize("change", [clip, assign, copy])
@pytest.mark.parametrize("body", BODIES)
def test_a_parameter_that_is_written_goes_on_being_trained(body: Any, change: Any) -> None:
    one, two = Holder(body, change), Holder(body, change)
    static = paddle.jit.to_static(two.forward, full_graph=True)
    for want, got in zip(trained(one.forward, one.w), trained(static, two.w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("body", BODIES)
def test_an_argument_that_is_written_goes_on_having_gradients(body: Any) -> None:
    def f(x: Any, n: Any, w: Any) -> Any:
        return body(w, x, n, clip)

    one, two = (T([0.75, -0.5], stop_gradient=False) for _ in range(2))
    static = paddle.jit.to_static(f, full_graph=True)
    wanted, found = trained(lambda x, n: f(x, n, one), one), trained(lambda x, n: static(x, n, two), two)
    for want, got in zip(wanted, found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_critic_that_clips_its_weights_is_trained() -> None:
    class Critic(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            with paddle.no_grad():
                for p in self.parameters():
                    p.clip_(-0.2, 0.2)
            return self.b(nn.functional.relu(self.a(x))).mean()

    nets = [Critic(), Critic()]
    nets[1].set_state_dict(nets[0].state_dict())
    calls = [nets[0], paddle.jit.to_static(nets[1].forward, full_graph=True)]
    for k in range(4):
        x = T(np.random.default_rng(k).normal(size=(5, 3)).astype(np.float32))
        for net, call in zip(nets, calls, strict=True):
            optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
            call(x).backward()
            optimizer.step()
            optimizer.clear_grad()
        for p, q in zip(*(net.parameters() for net in nets), strict=True):
            np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-5, atol=1e-6)
    assert any(np.abs(p.numpy()).max() > 0.2 for p in nets[1].parameters())


def test_second_derivatives_of_a_parameter_that_is_written() -> None:
    def f(x: Any, w: Any) -> Any:
        y = (w * w * w).sum()
        with paddle.no_grad():
            w.clip_(-0.5, 0.5)
        return y + (w * w * x).sum()

    def second(call: Any) -> list[Any]:
        w = T([0.75, -0.25], stop_gradient=False)
        with paddle.no_grad():
            w.scale_(0.5)
        (first,) = paddle.grad(call(T([1.0, 2.0]), w), w, create_graph=True)
        (other,) = paddle.grad((first * first).sum(), w)
        return [first.numpy(), other.numpy()]

    static = paddle.jit.to_static(f, full_graph=True)
    for _ in range(3):
        first, other = second(static)
        np.testing.assert_allclose(first, 3 * np.square([0.375, -0.125]) + 2 * np.array([0.375, -0.125]) * [1, 2])
        np.testing.assert_allclose(other, 2 * first * (6 * np.array([0.375, -0.125]) + 2 * np.array([1, 2])))
