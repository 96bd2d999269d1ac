"""PPO (Schulman et al., 2017) balances poles for 475 of 500 ticks: actor, critic, and the world as tensors.

Run it with `python3 dev.py demo cart_ppo`. The world is that of `reinforce.py` (the equations of gymnasium's
CartPole-v1; an episode ends at 12 degrees and after 500 ticks). 32 carts play 64 ticks as one Program, where a cart
that has lost its pole gets a new one; advantages are estimated as by Schulman et al. (2016), and
minibatches improve the policy.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from reinforce import EDGE, move
from training import Curves, Goal, Keeper, run, train

import dy2st as paddle
from dy2st import nn

F = nn.functional
GOAL = Goal("ticks that poles stand on the mean of 100 new carts", 475.0)
STEPS = 150
CARTS, TICKS, LIMIT, TEST, BATCH, EPOCHS = 32, 64, 500, 100, 256, 4
TILT = 12 * math.pi / 180
DISCOUNT, SMOOTH, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.005


class Player(nn.Layer):
    """Scores of both pushes and the value of states [cart, 4]."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.scores = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
        self.value = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, states):
        return F.log_softmax(self.scores(states)), self.value(states).squeeze(-1)


class World(nn.Layer):
    """The state of each cart and for how many ticks its pole has stood, as buffers: checkpoints have them."""

    def __init__(self, carts: int):
        super().__init__()
        self.register_buffer("state", fresh(carts))
        self.register_buffer("ticks", paddle.zeros([carts]))


def fresh(carts):
    """Return states of carts with a pole that nearly stands upright."""
    return paddle.uniform([carts, 4], min=-0.05, max=0.05)


def fallen(state):
    """Say of which carts the pole has fallen, or that they left the track."""
    return paddle.logical_or(state[:, 0].abs() > EDGE, state[:, 2].abs() > TILT)


@paddle.no_grad()
def play(player, state, ticks, count):
    """Return states, pushes, log-likelihoods of `count` ticks [tick, cart], then values, what goes on, and the end."""
    states, pushes, likelihoods, values, goes_on = [], [], [], [], []
    for _ in range(count):
        scores, value = player(state)
        push = paddle.multinomial(scores.exp(), 1)
        states.append(state)
        pushes.append(push)
        likelihoods.append(paddle.take_along_axis(scores, push, axis=1))
        values.append(value)
        state, ticks = move(state, push.squeeze(1)), ticks + 1
        over = paddle.logical_or(fallen(state), ticks >= LIMIT)
        goes_on.append(1.0 - over.astype("float32"))
        state = paddle.where(over.unsqueeze(1), fresh(state.shape[0]), state)
        ticks = paddle.where(over, paddle.zeros_like(ticks), ticks)
    values.append(player(state)[1])
    seen = [paddle.stack(states), paddle.stack(pushes), paddle.stack(likelihoods)]
    return seen, paddle.stack(values), paddle.stack(goes_on), state, ticks


@paddle.no_grad()
def advantages(values, goes_on):
    """Return how much better than its value each tick was: a mean over all horizons, which falls off by `SMOOTH`."""
    better, found = paddle.zeros_like(values[0]), []
    for back in range(goes_on.shape[0]):
        tick = goes_on.shape[0] - 1 - back
        surprise = 1.0 + DISCOUNT * values[tick + 1] * goes_on[tick] - values[tick]
        better = surprise + DISCOUNT * SMOOTH * goes_on[tick] * better
        found.append(better)
    return paddle.stack(found).flip([0])


@paddle.no_grad()
def standing(player, carts):
    """Return for how many ticks poles stand on the mean where the likelier push is done."""
    state, stands, ticks = fresh(carts), paddle.ones([carts], "bool"), paddle.zeros([carts])
    place = paddle.zeros([], "int64")
    while place < LIMIT and stands.any():
        state = move(state, player(state)[0].argmax(axis=1))
        ticks = ticks + stands.astype("float32")
        stands = paddle.logical_and(stands, paddle.logical_not(fallen(state)))
        place = place + 1
    return ticks.mean()


def loss_of(player, states, pushes, likelihoods, advantage, target):
    """Return PPO's loss, less the gain of entropy, and the error of the critic."""
    scores, value = player(states)
    ratio = (paddle.take_along_axis(scores, pushes, axis=1) - likelihoods).exp().squeeze(1)
    gain = paddle.minimum(ratio * advantage, ratio.clip(1 - CLIP, 1 + CLIP) * advantage).mean()
    entropy = -(scores.exp() * scores).sum(axis=1).mean()
    return 0.5 * F.mse_loss(value, target) - gain - ENTROPY * entropy


def recipe(folder: Path, steps: int, resume: bool = False) -> Curves:
    """Play and learn so many times at most; return the curves."""
    paddle.seed(0)
    with paddle.utils.unique_name.guard():
        player, world = Player(), World(CARTS)
        adam = paddle.optimizer.Adam(0.002, parameters=player.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))

    @paddle.jit.to_static
    def learn(states, pushes, likelihoods, advantage, target):
        loss = loss_of(player, states, pushes, likelihoods, advantage, target)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    played, estimate, stood = (paddle.jit.to_static(f) for f in (play, advantages, standing))

    def step(number):
        seen, values, goes_on, state, ticks = played(player, world.state, world.ticks, TICKS)
        world.state.set_value(state)
        world.ticks.set_value(ticks)
        better = estimate(values, goes_on)
        target = better + values[:-1]
        better = (better - better.mean()) / (better.std() + 1e-6)
        rows = [t.numpy().reshape(TICKS * CARTS, -1) for t in seen]
        rows += [t.numpy().ravel() for t in (better, target)]
        rng, losses = np.random.default_rng([1, number]), []
        for _ in range(EPOCHS):
            for chosen in np.split(rng.permutation(TICKS * CARTS), TICKS * CARTS // BATCH):
                losses.append(learn(*(paddle.to_tensor(row[chosen]) for row in rows)))
        return sum(map(float, losses)) / len(losses)

    keeper = Keeper({"player": player, "world": world, "adam": adam}, GOAL, folder)
    if resume:
        keeper.resume()
    return train(step, lambda: float(stood(player, TEST)), keeper, steps, every=min(5, steps // 2))


if __name__ == "__main__":
    run(recipe, GOAL, "cart_ppo", STEPS)
