"""PPO (Schulman et al., 2017) with many actors: each plays carts of its own, and one learner improves the policy.

Run it with `python3 examples/many_carts.py --actors 2`. An actor is a process, or an actor of Ray where that is
installed. It plays a whole batch of carts as one Program, whose `while` ends when all poles have fallen; the world is
that of `reinforce.py`. The policy's weights go to all actors at once, without a copy for each; what was seen comes back
in the order of the seeds, so a run gives the same numbers for any number of actors, and if one of them is killed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from reinforce import Policy, fallen, move

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.fleets import Fleet

LIMIT, CLIP = 200, 0.2


def rollout(policy: Policy, carts: int) -> tuple[paddle.Tensor, ...]:
    """Return states [tick, cart, 4], pushes, their log-likelihoods, and whether the cart still stood [tick, cart]."""
    state = paddle.uniform([carts, 4], min=-0.05, max=0.05)
    stands = paddle.ones([carts], "bool")
    states, pushes, likelihoods, standing = [], [], [], []
    while len(standing) < LIMIT and stands.any():
        scores = F.log_softmax(policy(state))
        push = paddle.multinomial(scores.exp(), 1)
        states.append(state)
        pushes.append(push)
        likelihoods.append(paddle.take_along_axis(scores, push, axis=1).squeeze(1))
        standing.append(stands.astype("float32"))
        state = move(state, push.squeeze(1))
        stands = paddle.logical_and(stands, paddle.logical_not(fallen(state)))
    return paddle.stack(states), paddle.stack(pushes), paddle.stack(likelihoods), paddle.stack(standing)


class Player:
    """In an actor: a policy, and the Program that plays with it."""

    policy: Policy | None = None

    @classmethod
    def prepare(cls, weights: dict[str, np.ndarray]) -> Any:
        """Give the policy new weights; its Program is traced once."""
        if cls.policy is None:
            cls.policy = Policy()
            cls.play = staticmethod(paddle.jit.to_static(rollout, full_graph=True))
        cls.policy.set_state_dict(weights)
        return cls


def played(player: Any, order: tuple[int, int]) -> list[np.ndarray]:
    """Play so many carts from a seed; return what was seen."""
    seed, carts = order
    paddle.seed(seed)
    with paddle.no_grad():
        return [t.numpy() for t in player.play(player.policy, carts)]


def clipped_loss(policy: Policy, states, pushes, likelihoods, advantage, standing):
    """Return PPO's loss: the advantage times how much likelier a push has become, which counts only near 1."""
    scores = F.log_softmax(policy(states))
    ratio = (paddle.take_along_axis(scores, pushes, axis=2).squeeze(2) - likelihoods).exp()
    gain = paddle.minimum(ratio * advantage, ratio.clip(1 - CLIP, 1 + CLIP) * advantage)
    return -(gain * standing).sum() / standing.sum()


def learner(policy: Policy, epochs: int = 6) -> Any:
    """Return the function that improves a policy by what one batch of carts has seen."""
    adam = paddle.optimizer.Adam(0.01, parameters=policy.parameters())

    @paddle.jit.to_static(full_graph=True)
    def step(*seen):
        loss = clipped_loss(policy, *seen)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    def learn(seen: Sequence[np.ndarray]) -> float:
        states, pushes, likelihoods, standing = seen
        left = standing.sum(0) - standing.cumsum(0) + standing  # ticks that were still to come
        chosen = left[standing > 0]
        advantage = (left - chosen.mean()) / (chosen.std() + 1e-6)
        for _ in range(epochs):
            step(*map(paddle.to_tensor, (states, pushes, likelihoods, advantage, standing)))
        return float(standing.sum(0).mean())

    return learn


def joined(parts: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return what several actors have seen as one batch: carts beside each other, for as long as the longest stood."""
    ticks = max(len(part[0]) for part in parts)
    padded = ([np.pad(x, [(0, ticks - len(x)), *[(0, 0)] * (x.ndim - 1)]) for x in part] for part in parts)
    return [np.concatenate(arrays, 1) for arrays in zip(*padded, strict=True)]


def train(turns: int, actors: int = 2, carts: int = 16, engine: Any = "auto") -> list[float]:
    """Return for each turn how many ticks the poles stood on the mean."""
    paddle.seed(0)
    policy = Policy()
    learn = learner(policy)
    stood: list[float] = []
    with Fleet(played, Player.prepare, workers=actors, engine=engine) as fleet:
        for turn in range(turns):
            weights = {name: t.numpy() for name, t in policy.state_dict().items()}
            orders = [(1000 * turn + i, carts) for i in range(4)]
            stood.append(learn(joined(list(fleet.map(orders, weights)))))
    return stood


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--engine", choices=["auto", "ray", "processes"], default="auto")
    options = parser.parse_args()
    for turn, ticks in enumerate(train(options.turns, options.actors, engine=options.engine)):
        print(f"turn {turn:3}: poles stood {ticks:5.1f} ticks  {'#' * int(ticks / 4)}")


if __name__ == "__main__":
    main()
