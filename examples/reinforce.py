"""REINFORCE (Williams, 1992): an agent learns to balance a pole; a whole episode and its gradient are one Program.

Run it with `python3 examples/reinforce.py`. The world is plain Python on tensors, a batch of carts at once. The
episode is a `while` that ends when every pole has fallen or time is up; what happened is kept in lists, and the
gradient goes back through all of it, however long it was.
"""

from __future__ import annotations

import argparse

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn

GRAVITY, HALF_POLE, POLE, CART, FORCE, TICK = 9.8, 0.5, 0.1, 1.0, 10.0, 0.02
EDGE, TILT = 2.4, 0.21


def move(state, push):
    """Return the state [cart, 4] (place, speed, angle, turning) a tick after a push to the right (1) or left (0)."""
    place, speed, angle, turning = state.unbind(axis=1)
    force = FORCE * (2 * push.astype(state.dtype) - 1)
    sine, cosine, mass = angle.sin(), angle.cos(), CART + POLE
    along = (force + POLE * HALF_POLE * turning**2 * sine) / mass
    twist = (GRAVITY * sine - cosine * along) / (HALF_POLE * (4 / 3 - POLE * cosine**2 / mass))
    pull = along - POLE * HALF_POLE * twist * cosine / mass
    return paddle.stack(
        [place + TICK * speed, speed + TICK * pull, angle + TICK * turning, turning + TICK * twist], axis=1
    )


def fallen(state):
    """Say of which carts the pole has fallen, or that they left the track."""
    return paddle.logical_or(state[:, 0].abs() > EDGE, state[:, 2].abs() > TILT)


class Policy(nn.Layer):
    """Scores of both pushes for states [cart, 4]."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, state):
        return self.net(state)


def play(policy: Policy, carts: int, limit: int):
    """Return for each tick the log-likelihood of the push [tick, cart], and whether the cart still stood."""
    state = paddle.uniform([carts, 4], min=-0.05, max=0.05)
    stands = paddle.ones([carts], "bool")
    likelihoods, standing = [], []
    while len(standing) < limit and stands.any():
        scores = F.log_softmax(policy(state))
        push = paddle.multinomial(scores.exp(), 1)
        likelihoods.append(paddle.take_along_axis(scores, push, axis=1).squeeze(1))
        standing.append(stands.astype("float32"))
        state = move(state, push.squeeze(1))
        stands = paddle.logical_and(stands, paddle.logical_not(fallen(state)))
    return paddle.stack(likelihoods), paddle.stack(standing)


def learning_step(policy: Policy, optimizer: paddle.optimizer.Optimizer, carts: int, limit: int, static: bool = True):
    """Return the function that plays once, learns from it and returns the mean number of ticks that a pole stood."""

    def step():
        likelihoods, standing = play(policy, carts, limit)
        left = standing.sum(axis=0) - standing.cumsum(axis=0) + standing  # ticks that were still to come
        mean = (left * standing).sum() / standing.sum()
        deviation = (((left - mean) * standing) ** 2).sum() / standing.sum()
        advantage = (left - mean) / (deviation.sqrt() + 1e-6) * standing
        loss = -(likelihoods * advantage).sum() / standing.sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return standing.sum(axis=0).mean()

    return paddle.jit.to_static(step, full_graph=True) if static else step


def train(steps: int, carts: int = 16, limit: int = 200, static: bool = True) -> tuple[Policy, list[float]]:
    """Return a trained policy and for each step how long the poles stood."""
    paddle.seed(0)
    policy = Policy()
    adam = paddle.optimizer.Adam(0.02, parameters=policy.parameters())
    step = learning_step(policy, adam, carts, limit, static)
    return policy, [float(step()) for _ in range(steps)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    _, stood = train(parser.parse_args().steps)
    for i in range(0, len(stood), 10):
        ticks = sum(stood[i : i + 10]) / len(stood[i : i + 10])
        print(f"episode {i:3}: poles stood {ticks:5.1f} ticks  {'#' * int(ticks / 4)}")


if __name__ == "__main__":
    main()
