"""Training as tutorials write it where there is more than a loss: two optimizers, an epoch of a loader, L-BFGS, PPO."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite.nets import Decorate, Package, eagerly, tutorial
from benchmarks.suite.pictures import LENET
from benchmarks.suite.policy import moved
from benchmarks.suite.workload import Arrays, Job, Row, layers, normal


def three_layers(p: Package, sizes: tuple[int, ...], between: Any) -> Any:
    """Return a net of three linear layers."""
    nn = p.nn
    a, b, c, d = sizes
    return nn.Sequential(nn.Linear(a, b), between(), nn.Linear(b, c), between(), nn.Linear(c, d))


def weights_of(prefix: str, *sizes: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of three linear layers' weights."""
    shapes: dict[str, tuple[int, ...]] = {}
    for at, (into, out) in enumerate(itertools.pairwise(sizes)):
        shapes |= {f"{prefix}{2 * at}.weight": (into, out), f"{prefix}{2 * at}.bias": (out,)}
    return shapes


def part(given: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin so, without that."""
    return {name.removeprefix(prefix): array for name, array in given.items() if name.startswith(prefix)}


# ---- two nets against each other ------------------------------------------------------------------------------------
def gan_arrays(random: np.random.Generator, batch: int, noise: int, width: int, size: int) -> Arrays:
    shapes = weights_of("made.", noise, width, width, size) | weights_of("judge.", size, width, width, 1)
    return normal(random, x=(batch, size), z=(batch, noise)) | layers(random, **shapes)


def gan_job(p: Package, model: Decorate, whole: Decorate, given: Arrays) -> Job:
    made, judge = part(given, "made."), part(given, "judge.")
    sizes = [tuple(w[f"{at}.weight"].shape[0] for at in (0, 2, 4)) + w["4.bias"].shape for w in (made, judge)]
    maker = p.filled(three_layers(p, sizes[0], p.nn.ReLU), made)
    judging = p.filled(three_layers(p, sizes[1], p.nn.LeakyReLU), judge)
    of_maker = p.optimizer("Adam", list(maker.parameters()), 2e-4)
    of_judge = p.optimizer("Adam", list(judging.parameters()), 2e-4)
    maker, judging, loss_of = model(maker), model(judging), p.nn.BCEWithLogitsLoss()
    ones, zeros = (p.tensor(np.full((len(given["x"]), 1), fill, "float32")) for fill in (1.0, 0.0))

    @whole
    def step(x: Any, z: Any) -> tuple[Any, Any]:
        fake = maker(z)
        judged = loss_of(judging(x), ones) + loss_of(judging(fake.detach()), zeros)
        p.cleared(of_judge)
        judged.backward()
        of_judge.step()
        fooled = loss_of(judging(fake), ones)
        p.cleared(of_maker)
        fooled.backward()
        of_maker.step()
        return judged, fooled

    x, z = p.tensor(given["x"]), p.tensor(given["z"])
    return lambda: step(x, z)


# ---- an epoch from a loader -----------------------------------------------------------------------------------------
def epoch_arrays(random: np.random.Generator, pictures: int, batch: int) -> Arrays:
    weights = {name.replace("fc.", "tail."): array for name, array in layers(random, **LENET).items()}
    x = random.standard_normal((pictures, 1, 28, 28)).astype("float32")
    return {"x": x, "y": random.integers(0, 10, pictures), "batch": np.array(batch)} | weights


def lenet(p: Package) -> Any:
    nn, base = p.nn, p.base
    convolution, pool = (nn.Conv2d, nn.MaxPool2d) if p.torch else (nn.Conv2D, nn.MaxPool2D)

    class LeNet(base):
        def __init__(self):
            super().__init__()
            first, second = convolution(1, 6, 3, padding=1), convolution(6, 16, 5)
            self.features = nn.Sequential(first, nn.ReLU(), pool(2, 2), second, nn.ReLU(), pool(2, 2))
            self.tail = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))

        def forward(self, x: Any) -> Any:
            return self.tail(self.features(x).reshape([x.shape[0], 400]))

    return LeNet()


def epoch_job(p: Package, model: Decorate, whole: Decorate, given: Arrays) -> Job:
    net = p.filled(lenet(p), given)
    optimizer, loss_of = p.optimizer("Adam", list(net.parameters()), 1e-3), p.nn.CrossEntropyLoss()
    net, data = model(net), p.package.utils.data if p.torch else p.package.io
    pairs = data.TensorDataset(p.tensor(given["x"]), p.tensor(given["y"])) if p.torch else _pairs(data, given)
    loader = data.DataLoader(pairs, batch_size=int(given["batch"]), shuffle=False)

    @whole
    def step(x: Any, y: Any) -> Any:
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        p.cleared(optimizer)
        return loss

    def epoch() -> float:
        return sum(float(step(x, y).detach()) for x, y in loader)

    return epoch


def _pairs(data: Any, given: Arrays) -> Any:
    """Return a dataset as tutorials write one."""

    class Pictures(data.Dataset):
        def __getitem__(self, i: int) -> Any:
            return given["x"][i], given["y"][i]

        def __len__(self) -> int:
            return len(given["y"])

    return Pictures()


# ---- a field fitted by L-BFGS ---------------------------------------------------------------------------------------
def poisson_arrays(random: np.random.Generator, points: int, width: int) -> Arrays:
    made = layers(random, **weights_of("", 1, width, width, 1))
    return {"x": np.linspace(0, 1, points, dtype="float32")[:, None]} | made


def poisson_job(p: Package, model: Decorate, whole: Decorate, given: Arrays) -> Job:
    """Return a step of L-BFGS on u'' + pi^2 sin(pi x) = 0 with u = 0 at both ends."""
    sizes = *(given[f"{at}.weight"].shape[0] for at in (0, 2, 4)), 1
    net = p.filled(three_layers(p, sizes, p.nn.Tanh), given)
    optimizer = p.optimizer("LBFGS", list(net.parameters()), 0.1, max_iter=4)
    net, grad = model(net), p.package.autograd.grad if p.torch else p.package.grad
    x, ends = p.tensor(given["x"]), p.tensor(np.array([[0.0], [1.0]], "float32"))
    wave = p.tensor((np.pi**2 * np.sin(np.pi * given["x"])).astype("float32"))
    if p.torch:
        x.requires_grad_()
    else:
        x.stop_gradient = False

    @whole
    def loss_of(x: Any, wave: Any, ends: Any) -> Any:
        u = net(x)
        slope = grad(u.sum(), x, create_graph=True)[0]
        bend = grad(slope.sum(), x, create_graph=True)[0]
        return ((bend + wave) ** 2).mean() + (net(ends) ** 2).mean()

    def closure() -> Any:
        p.cleared(optimizer)
        loss = loss_of(x, wave, ends)
        loss.backward()
        return loss

    return lambda: optimizer.step(closure)


# ---- PPO ------------------------------------------------------------------------------------------------------------
CLIP, DISCOUNT, EPOCHS = 0.2, 0.99, 4


def ppo_arrays(random: np.random.Generator, turns: int, carts: int, width: int) -> Arrays:
    shapes = weights_of("actor.", 4, width, width, 2) | weights_of("critic.", 4, width, width, 1)
    chances = random.random((turns, carts))
    return normal(random, start=(carts, 4)) | {"chances": chances} | layers(random, **shapes)


def ppo_job(p: Package, model: Decorate, whole: Decorate, given: Arrays) -> Job:
    """Return a rollout of some carts in NumPy, and four updates by the clipped objective (Schulman and others 2017)."""
    actor, critic = part(given, "actor."), part(given, "critic.")
    width = len(actor["0.bias"])
    acting = p.filled(three_layers(p, (4, width, width, 2), p.nn.Tanh), actor)
    judging = p.filled(three_layers(p, (4, width, width, 1), p.nn.Tanh), critic)
    optimizer = p.optimizer("Adam", [*acting.parameters(), *judging.parameters()], 3e-4)
    acting, judging, package = model(acting), model(judging), p.package

    def acted(state: Any) -> tuple[np.ndarray, np.ndarray]:
        with package.no_grad():
            return p.softmax(acting(state), -1).numpy(), judging(state).numpy()[:, 0]

    @whole
    def update(states: Any, actions: Any, before: Any, returns: Any, gains: Any) -> Any:
        chances = p.softmax(acting(states), -1)
        taken = (chances * actions).sum(-1)
        ratio = taken / before
        clipped = package.clip(ratio, 1 - CLIP, 1 + CLIP)
        objective = package.minimum(ratio * gains, clipped * gains).mean()
        spread = -(chances * package.log(chances)).sum(-1).mean()
        error = ((judging(states)[:, 0] - returns) ** 2).mean()
        loss = 0.5 * error - objective - 0.01 * spread
        p.cleared(optimizer)
        loss.backward()
        optimizer.step()
        return loss

    def job() -> Any:
        states, actions, taken, values, rewards = rollout(acted, p, given)
        returns = discounted(rewards)
        gains = returns - values
        batch = states, actions, taken, returns, (gains - gains.mean()) / (gains.std() + 1e-8)
        tensors = [p.tensor(np.ascontiguousarray(x.reshape(-1, *x.shape[2:]).astype("float32"))) for x in batch]
        return [update(*tensors) for _ in range(EPOCHS)][-1]

    return job


def rollout(acted: Callable[..., Any], p: Package, given: Arrays) -> tuple[np.ndarray, ...]:
    """Let the carts run; return states, actions (one of two is 1), their chances, values and rewards."""
    state, kept = given["start"].copy(), []
    for drawn in given["chances"]:
        chances, values = acted(p.tensor(state))
        right = drawn < chances[:, 1]
        taken = np.where(right, chances[:, 1], chances[:, 0])
        following = np.stack(moved(np.sin, np.cos, state.T, np.where(right, 10.0, -10.0)), -1).astype("float32")
        fell = (np.abs(following[:, 2]) > 0.2095) | (np.abs(following[:, 0]) > 2.4)
        kept.append((state, np.stack([~right, right], -1), taken, values, 1.0 - fell))
        state = np.where(fell[:, None], given["start"], following)
    return tuple(np.stack(parts) for parts in zip(*kept, strict=True))


def discounted(rewards: np.ndarray) -> np.ndarray:
    """Return the discounted sums of what follows."""
    returns, so_far = np.zeros_like(rewards), np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        so_far = returns[t] = rewards[t] + DISCOUNT * so_far * (rewards[t] > 0)
    return returns


GAN, EPOCH, POISSON, PPO = map(tutorial, (gan_job, epoch_job, poisson_job, ppo_job))
ROWS = (
    Row(
        "gan",
        "GAN of two MLPs, 64-256-256-784 and back, batch 64, two Adam steps",
        gan_arrays,
        {"batch": 64, "noise": 64, "width": 256, "size": 784},
        {"batch": 2, "noise": 3, "width": 4, "size": 5},
        GAN,
        eagerly(GAN),
        tolerance=2e-3,
    ),
    Row(
        "epoch",
        "an epoch of 1,024 pictures from a DataLoader, LeNet, batch 64, Adam",
        epoch_arrays,
        {"pictures": 1024, "batch": 64},
        {"pictures": 5, "batch": 2},
        EPOCH,
        eagerly(EPOCH),
        tolerance=5e-3,
    ),
    Row(
        "pinn-lbfgs",
        "Poisson's equation, MLP 1-32-32-1, 128 points, a step of L-BFGS (4 turns)",
        poisson_arrays,
        {"points": 128, "width": 32},
        {"points": 5, "width": 4},
        POISSON,
        eagerly(POISSON),
        tolerance=5e-3,
    ),
    Row(
        "ppo",
        "PPO: 8 carts for 128 turns, then 4 updates, MLPs of 64",
        ppo_arrays,
        {"turns": 128, "carts": 8, "width": 64},
        {"turns": 4, "carts": 2, "width": 5},
        PPO,
        eagerly(PPO),
        tolerance=5e-3,
    ),
)
