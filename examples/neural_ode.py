"""A differentiable solver of ordinary differential equations, and a network that learns such an equation from data.

Run it with `python3 examples/neural_ode.py`. The solver is a plain `while` whose steps are as long as the error allows,
so their number is known to nobody before the run; gradients go back through all of them. They are checked against the
analytic sensitivities of a damped oscillator, then used to train a network: y' = network(y), seen through the solver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from drawing import log_plot

import dy2st as paddle
import dy2st.nn.functional as F

DAMPING, FREQUENCY = 0.15, 1.4


def runge_kutta(f, y, h):
    """Return y after a step of the pair of Bogacki and Shampine (orders 3 and 2), and the estimate of its error."""
    k1 = f(y)
    k2 = f(y + h * k1 / 2)
    k3 = f(y + h * k2 * 3 / 4)
    new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
    k4 = f(new)
    return new, h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)


def solve(f, y, duration, tolerance):
    """Return y after `duration` under y' = f(y), and how many steps that took, those in vain included."""
    t = paddle.zeros([], y.dtype)
    h = paddle.ones_like(t) * duration / 10
    steps = paddle.zeros([], "int64")
    while t < duration:
        if t + h > duration:
            h = duration - t
        new, error = runge_kutta(f, y, h)
        ratio = paddle.max(paddle.abs(error)) / tolerance
        if ratio <= 1:
            t = t + h
            y = new
        h = h * paddle.clip(0.9 * (ratio + 1e-10) ** (-1 / 3), 0.2, 5.0)
        steps += 1
    return y, steps


def oscillator(damping, frequency, q, p, duration, tolerance):
    """Return the place at the end of q'' + 2 damping q' + frequency**2 q = 0, from place q and speed p."""

    def f(y):
        return paddle.stack([y[1], -(frequency * frequency) * y[0] - 2 * damping * y[1]])

    y, steps = solve(f, paddle.stack([q, p]), duration, tolerance)
    return y[0], steps


def sensitivities(damping: float, frequency: float, q: float, p: float, t: float) -> tuple[float, list[float]]:
    """Return the place of the oscillator at time t, and its derivatives by damping, frequency, q and p: formulas."""
    omega = np.sqrt(frequency**2 - damping**2)
    fade, sine, cosine, push = np.exp(-damping * t), np.sin(omega * t), np.cos(omega * t), damping * q + p
    place = fade * (q * cosine + push / omega * sine)
    in_omega = fade * (-q * t * sine + push / omega * t * cosine - push / omega**2 * sine)
    in_damping = -t * place + fade * q / omega * sine - in_omega * damping / omega
    in_q = fade * (cosine + damping / omega * sine)
    return place, [in_damping, in_omega * frequency / omega, in_q, fade / omega * sine]


def sensitivity_errors(
    run: Callable[..., tuple[paddle.Tensor, paddle.Tensor]], duration: float, tolerance: float
) -> list[float]:
    """Return how far the place and its four gradients are from the formulas."""
    given = [DAMPING, FREQUENCY, 1.0, -0.5]
    tensors = [paddle.to_tensor(np.array(v), stop_gradient=False) for v in given]
    place, _ = run(*tensors, duration, tolerance)
    place.backward()
    value, slopes = sensitivities(*given, duration)
    return [abs(float(place) - value), *(abs(float(x.grad) - s) for x, s in zip(tensors, slopes, strict=True))]


class Learned(paddle.nn.Layer):
    """The right-hand side of an equation: a small network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(2, width), paddle.nn.Linear(width, 2)

    def forward(self, y):
        return self.second(F.tanh(self.first(y)))


def flow(starts: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return where the linear spiral takes each start at each time, [times, starts, 2]: the data to learn from."""
    turns = np.stack([np.cos(times), np.sin(times), -np.sin(times), np.cos(times)], axis=-1).reshape(-1, 2, 2)
    return np.exp(-0.2 * times)[:, None, None] * (starts @ turns)


def train(
    steps: int, width: int = 24, tolerance: float = 1e-3
) -> tuple[Learned, Callable[..., paddle.Tensor], list[float]]:
    """Train a network to flow as the data do; return it, its training step, and the loss at each step."""
    paddle.seed(0)
    field, rng = Learned(width), np.random.default_rng(0)
    optimizer = paddle.optimizer.Adam(0.02, parameters=field.parameters())
    times = np.linspace(0.4, 2, 5)

    @paddle.jit.to_static(full_graph=True)
    def step(y, seen):
        loss = 0.0
        for target in seen:
            y, _ = solve(field, y, float(times[0]), tolerance)
            loss = loss + ((y - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss

    losses: list[float] = []
    for _ in range(steps):
        starts = rng.uniform(-1, 1, (16, 2))
        seen = flow(starts, times)
        losses.append(float(step(*[paddle.to_tensor(a.astype("float32")) for a in (starts, seen)])))
    return field, step, losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("neural_ode_output"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    static = paddle.jit.to_static(oscillator, full_graph=True)
    for tolerance in (1e-4, 1e-6, 1e-8):
        errors = sensitivity_errors(static, 3.0, tolerance)
        print(f"tolerance {tolerance:.0e}: error of the place {errors[0]:.1e}, of its gradients {max(errors[1:]):.1e}")
    start = time.perf_counter()
    _, step, losses = train(options.steps)
    print(f"loss {losses[0]:.1e} -> {losses[-1]:.1e}, {options.steps} steps in {time.perf_counter() - start:.1f} s")
    print(step.explain())
    picture = options.out / "neural_ode.svg"
    log_plot(picture, "A network that learns an equation through an adaptive solver", {"loss": losses})
    print(f"convergence: {picture.resolve()}")


if __name__ == "__main__":
    main()
