"""A physics-informed network: the viscous Burgers equation u_t + u u_x = nu u_xx, and how near its solution we come.

Run it with `python3 examples/pinn.py`. The loss holds first and second derivatives of the network by its inputs, and
its gradient by the weights is a third order. The whole training step (forward, derivatives of the input, gradient,
Adam) is one Program. The exact solution is a front that travels: u = c - a tanh(a (x - c t) / (2 nu)).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from drawing import log_plot

import dy2st as paddle

NU, SPEED, HEIGHT = 0.1, 0.5, 0.5
EVERY = 20


class Field(paddle.nn.Layer):
    """u(x, t): a network of columns x and t."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = paddle.nn.Sequential(
            paddle.nn.Linear(2, width),
            paddle.nn.Tanh(),
            paddle.nn.Linear(width, width),
            paddle.nn.Tanh(),
            paddle.nn.Linear(width, 1),
        )

    def forward(self, x, t):
        return self.layers(paddle.concat([x, t], axis=1))


@dataclass
class Trained:
    """The network, its training step, and for each `EVERY` steps the loss and the largest error."""

    field: Field
    step: Callable[..., paddle.Tensor]
    losses: list[float]
    errors: list[float]
    seconds: float


def exact(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the solution of the equation that the network is to find."""
    return SPEED - HEIGHT * np.tanh(HEIGHT * (x - SPEED * t) / (2 * NU))


def residual(field: Field, x: paddle.Tensor, t: paddle.Tensor) -> paddle.Tensor:
    """Return by how much the field misses the equation at each point."""
    x.stop_gradient = t.stop_gradient = False
    u = field(x, t)
    u_x, u_t = paddle.grad([u], [x, t], create_graph=True)
    (u_xx,) = paddle.grad([u_x], [x], create_graph=True)
    return u_t + u * u_x - NU * u_xx


def train_step(
    field: Field, optimizer: paddle.optimizer.Optimizer, static: bool = True
) -> Callable[..., paddle.Tensor]:
    """Return the function that takes points inside and on the edge (with the solution there) and learns from them."""

    def step(x, t, edge_x, edge_t, edge_u):
        inside = residual(field, x, t)
        edge = field(edge_x, edge_t) - edge_u
        loss = (inside * inside).mean() + 10 * (edge * edge).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss

    return paddle.jit.to_static(step, full_graph=True) if static else step


def points(rng: np.random.Generator, count: int) -> list[paddle.Tensor]:
    """Return `count` random points inside, and as many at the start and at both ends, with the solution there."""
    x, t = rng.uniform(-1, 1, (count, 1)), rng.uniform(0, 1, (count, 1))
    half = count // 2
    edge_x = np.concatenate([x[:half], np.sign(x[half:])])
    edge_t = np.concatenate([np.zeros((half, 1)), t[half:]])
    return [paddle.to_tensor(a.astype("float32")) for a in (x, t, edge_x, edge_t, exact(edge_x, edge_t))]


def largest_error(field: Field) -> float:
    """Return the largest distance from the solution on a grid of 41 x 21 points."""
    x, t = (a.reshape(-1, 1) for a in np.meshgrid(np.linspace(-1, 1, 41), np.linspace(0, 1, 21)))
    with paddle.no_grad():
        u = field(*[paddle.to_tensor(a.astype("float32")) for a in (x, t)])
    return float(np.abs(u.numpy() - exact(x, t)).max())


def train(steps: int, width: int = 24, count: int = 128, static: bool = True) -> Trained:
    """Train a network from the same start, on the same points each time."""
    paddle.seed(0)
    field, rng = Field(width), np.random.default_rng(0)
    rate = paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=steps)
    step = train_step(field, paddle.optimizer.Adam(rate, parameters=field.parameters()), static)
    losses: list[float] = []
    errors: list[float] = []
    start = time.perf_counter()
    for number in range(steps):
        loss = step(*points(rng, count))
        rate.step()
        if number % EVERY == 0 or number == steps - 1:
            losses.append(float(loss))
            errors.append(largest_error(field))
    return Trained(field, step, losses, errors, time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--out", type=Path, default=Path("pinn_output"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    trained = train(options.steps)
    print(f"loss {trained.losses[0]:.1e} -> {trained.losses[-1]:.1e}, largest error {trained.errors[0]:.1e} -> "
          f"{trained.errors[-1]:.1e}, {options.steps} steps in {trained.seconds:.1f} s")  # fmt: skip
    print(trained.step.explain())
    picture = options.out / "pinn.svg"
    curves = {"loss": trained.losses, "largest error": trained.errors}
    log_plot(picture, "Burgers' equation: a network that learns its solution", curves, f"steps / {EVERY}")
    print(f"convergence: {picture.resolve()}")


if __name__ == "__main__":
    main()
