"""Whole train steps: loss, gradients and update as one call, in the form that suits each package best.

What dy2st compiles depends on the form (forms.py). torch runs its own optimizer eagerly; under torch.compile the
step is one function of its state, updated in place. jax gives its state away to the step (donation).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite.forms import RATE
from benchmarks.suite.workload import Arrays

B1, B2, EPSILON = 0.9, 0.999, 1e-8
SGD, ADAM = "SGD", "Adam"


def parameters(paddle: Any, given: Arrays, names: tuple[str, ...]) -> list[Any]:
    """Make parameters of Paddle's from arrays."""
    constant = paddle.nn.initializer.Assign
    return [
        paddle.create_parameter(list(given[name].shape), "float32", default_initializer=constant(given[name]))
        for name in names
    ]


def torch_step(torch: Any, compiled: Any, loss_of: Callable[..., Any], weights: list[np.ndarray], rule: str) -> Any:
    """Return a step; `loss_of` takes the list of weights first."""
    tensors = [torch.from_numpy(w.copy()) for w in weights]
    if compiled is not torch.compile:
        tensors = [torch.nn.Parameter(w) for w in tensors]
        optimizer = getattr(torch.optim, rule)(tensors, lr=RATE)

        def step(*args: Any) -> Any:
            loss = loss_of(tensors, *args)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    @compiled(fullgraph=True)
    def update(tensors: Any, first: Any, second: Any, turn: Any, *args: Any) -> Any:
        slopes, loss = torch.func.grad_and_value(loss_of)(tensors, *args)
        if rule == SGD:
            for w, g in zip(tensors, slopes, strict=True):
                w.sub_(g, alpha=RATE)
            return loss
        turn += 1
        size, root = RATE / (1 - B1**turn), (1 - B2**turn).sqrt()
        for w, m, v, g in zip(tensors, first, second, slopes, strict=True):
            m.mul_(B1).add_(g, alpha=1 - B1)
            v.mul_(B2).addcmul_(g, g, value=1 - B2)
            w.sub_(size * m / (v.sqrt() / root + EPSILON))
        return loss

    first, second = ([torch.zeros_like(w) for w in tensors] for _ in range(2))
    turn = torch.zeros(())
    return lambda *args: update(tensors, first, second, turn, *args)


def jax_step(jax: Any, loss_of: Callable[..., Any], weights: Any, rule: str) -> Any:
    """Return a step; `loss_of` takes the weights first, any tree of arrays."""

    def sgd(state: Any, *args: Any) -> Any:
        loss, slopes = jax.value_and_grad(loss_of)(state, *args)
        return loss, jax.tree.map(lambda w, g: w - RATE * g, state, slopes)

    def adam(state: Any, *args: Any) -> Any:
        weights, first, second, turn = state
        loss, slopes = jax.value_and_grad(loss_of)(weights, *args)
        turn = turn + 1
        first = jax.tree.map(lambda m, g: B1 * m + (1 - B1) * g, first, slopes)
        second = jax.tree.map(lambda v, g: B2 * v + (1 - B2) * g * g, second, slopes)
        size, root = RATE / (1 - B1**turn), jax.numpy.sqrt(1 - B2**turn)
        moved = jax.tree.map(
            lambda w, m, v: w - size * m / (jax.numpy.sqrt(v) / root + EPSILON), weights, first, second
        )
        return loss, (moved, first, second, turn)

    weights = jax.tree.map(jax.numpy.array, weights)
    zeros = [jax.tree.map(jax.numpy.zeros_like, weights) for _ in range(2)]
    state = weights if rule == SGD else (weights, *zeros, jax.numpy.float32(0))
    update = jax.jit(sgd if rule == SGD else adam, donate_argnums=0)

    def step(*args: Any) -> Any:
        nonlocal state
        loss, state = update(state, *args)
        jax.block_until_ready(state)
        return loss

    return step


class NumpyAdam:
    """Adam by hand, in place."""

    def __init__(self, weights: list[np.ndarray]):
        self.weights, self.turn = weights, 0
        self.first, self.second = ([np.zeros_like(w) for w in weights] for _ in range(2))

    def step(self, slopes: list[np.ndarray]) -> None:
        self.turn += 1
        size = RATE / (1 - B1**self.turn)
        for w, m, v, g in zip(self.weights, self.first, self.second, slopes, strict=True):
            m *= B1
            m += (1 - B1) * g
            v *= B2
            v += (1 - B2) * g * g
            w -= size * m / (np.sqrt(v / (1 - B2**self.turn)) + EPSILON)
