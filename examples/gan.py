"""Two networks against each other (Goodfellow et al., 2014): a training step with two optimizers as one Program.

Run it with `python3 examples/gan.py`. The generator learns to put points onto a circle; the discriminator learns to
tell its points from true ones. A lightly penalised gradient of the discriminator (Mescheder et al., 2018) keeps both
on the ground; it is a derivative inside of the loss.
"""

from __future__ import annotations

import argparse

import numpy as np

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

NOISE = 4


def network(inputs: int, outputs: int, width: int = 32) -> nn.Layer:
    """Return a network of two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


class Game(nn.Layer):
    """The two players: `generator` makes points of noise, `discriminator` gives the logit that a point is true."""

    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = network(NOISE, 2), network(2, 1)

    def forward(self, noise):
        points = self.generator(noise)
        return points, self.discriminator(points)


def playing_step(game: Game, rate: float = 0.003, penalty: float = 0.1, static: bool = True):
    """Return the function of true points that lets both players learn and returns the losses of both."""
    for_generator = paddle.optimizer.Adam(rate, 0.5, 0.99, parameters=game.generator.parameters())
    for_discriminator = paddle.optimizer.Adam(rate, 0.5, 0.99, parameters=game.discriminator.parameters())

    def step(true):
        true.stop_gradient = False
        made = game.generator(paddle.randn([true.shape[0], NOISE]))
        logits = game.discriminator(true)
        (slope,) = paddle.grad(logits.sum(), true, create_graph=True)
        caught = F.softplus(-logits).mean() + F.softplus(game.discriminator(made.detach())).mean()
        (caught + penalty * (slope**2).sum(axis=1).mean()).backward()
        for_discriminator.step()
        for_discriminator.clear_grad()

        missed = F.softplus(-game.discriminator(made)).mean()
        missed.backward()
        for_generator.step()
        for_generator.clear_grad()
        for_discriminator.clear_grad()
        return caught, missed

    return paddle.jit.to_static(step, full_graph=True) if static else step


def circle(rng: np.random.Generator, count: int) -> paddle.Tensor:
    """Return points near the circle of radius 2."""
    angle, radius = rng.uniform(0, 2 * np.pi, count), rng.normal(2, 0.05, count)
    return paddle.to_tensor(np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype("float32"))


@paddle.no_grad()
def distance(game: Game, count: int = 512) -> float:
    """Return how far from the circle the generator's points are, as a mean."""
    points, _ = game(paddle.randn([count, NOISE]))
    return float((paddle.linalg.norm(points, axis=1) - 2).abs().mean())


def train(steps: int, batch: int = 64, static: bool = True) -> tuple[Game, list[tuple[float, float]]]:
    """Return the trained players and their losses at each step."""
    paddle.seed(0)
    game, rng = Game(), np.random.default_rng(0)
    step = playing_step(game, static=static)
    played = (step(circle(rng, batch)) for _ in range(steps))
    return game, [(float(caught), float(missed)) for caught, missed in played]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    before = distance(train(0)[0])
    game, losses = train(options.steps)
    print(f"losses at the end: discriminator {losses[-1][0]:.3f}, generator {losses[-1][1]:.3f}")
    print(f"distance of made points from the circle: {before:.3f} -> {distance(game):.3f}")


if __name__ == "__main__":
    main()
