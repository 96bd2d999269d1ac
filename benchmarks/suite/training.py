"""Train steps of small nets: an MLP with a layer that runs by chance, an autoencoder with a shared weight."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite.forms import MINIMIZE, RATE, Form, with_training
from benchmarks.suite.sides import with_jax, with_numpy, with_torch
from benchmarks.suite.steps import ADAM, SGD, NumpyAdam, jax_step, parameters, torch_step
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal

PARAMETERS = "w1", "b1", "w2", "b2", "w3", "b3"
CHANCES = (0.0, 1.0, 0.0)  # of leaving the second layer out, in the calls that are compared; then a half


def three(step: Job) -> list[Any]:
    return [step() for _ in range(3)]


# ---- the MLP --------------------------------------------------------------------------------------------------------
def mlp_arrays(random: np.random.Generator, batch: int, inputs: int, width: int) -> Arrays:
    shapes = {"w1": (inputs, width), "b1": (width,), "w2": (width, width), "b2": (width,), "w3": (width, 1), "b3": (1,)}
    return normal(random, x=(batch, inputs), y=(batch, 1)) | layers(random, **shapes)


def mlp_work(batch: int, inputs: int, width: int) -> Work:
    """Count the second layer by a half; an input needs no gradient."""
    first, second, third = inputs * width, width * width / 2, width
    return Work(2.0 * batch * (2 * first + 3 * second + 3 * third), 8.0 * (first + second + third))


def chances() -> Callable[[], float]:
    """Return what gives the chance of each call."""
    turns = iter(CHANCES)
    return lambda: next(turns, 0.5)


def mlp_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    w1, b1, w2, b2, w3, b3 = weights = parameters(paddle, given, PARAMETERS)
    relu, linear = paddle.nn.functional.relu, paddle.nn.functional.linear

    def model(x: Any, chance: Any) -> Any:
        hidden = relu(linear(x, w1, b1))
        if paddle.rand([1]) >= chance:
            hidden = relu(linear(hidden, w2, b2))
        return linear(hidden, w3, b3)

    def model_by_hand(x: Any, chance: Any) -> Any:
        hidden, twice = relu(linear(x, w1, b1)), paddle.rand([1]) >= chance
        hidden = paddle.static.nn.cond(twice, lambda: relu(linear(hidden, w2, b2)), lambda: hidden)
        return linear(hidden, w3, b3)

    model = model_by_hand if form.name == MINIMIZE else form.model(model)

    def loss_of(x: Any, y: Any, chance: Any) -> Any:
        return ((model(x, chance) - y) ** 2).mean()

    step, chance = form.step(loss_of, weights, SGD), chances()
    x, y = paddle.to_tensor(given["x"]), paddle.to_tensor(given["y"])
    values = {value: paddle.to_tensor([value], "float32") for value in (0.0, 0.5, 1.0)}
    return lambda: step(x, y, values[chance()])


def mlp_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    relu, chance = torch.nn.functional.relu, chances()

    def loss_of(weights: Any, x: Any, y: Any, twice: bool) -> Any:
        w1, b1, w2, b2, w3, b3 = weights
        hidden = relu(torch.addmm(b1, x, w1))
        if twice:
            hidden = relu(torch.addmm(b2, hidden, w2))
        return ((torch.addmm(b3, hidden, w3) - y) ** 2).mean()

    step = torch_step(torch, compiled, loss_of, [given[name] for name in PARAMETERS], SGD)
    x, y = torch.from_numpy(given["x"]), torch.from_numpy(given["y"])
    return lambda: step(x, y, bool(torch.rand(1) >= chance()))


def mlp_jax(jax: Any, given: Arrays) -> Job:
    relu, x, y, chance = jax.nn.relu, jax.numpy.asarray(given["x"]), jax.numpy.asarray(given["y"]), chances()

    def loss_of(weights: Any, x: Any, y: Any, key: Any, chance: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = weights
        hidden = relu(x @ w1 + b1)
        twice = jax.random.uniform(key) >= chance
        hidden = jax.lax.cond(twice, lambda h: relu(h @ w2 + b2), lambda h: h, hidden)
        return ((hidden @ w3 + b3 - y) ** 2).mean()

    def of_turn(weights: Any, x: Any, y: Any, turn: Any, chance: Any) -> Any:
        return loss_of(weights, x, y, jax.random.fold_in(jax.random.key(0), turn), chance)

    step = jax_step(jax, of_turn, [given[name] for name in PARAMETERS], SGD)
    turn = 0

    def job() -> Any:
        nonlocal turn
        turn += 1
        return step(x, y, turn, chance())

    return job


def mlp_numpy(given: Arrays) -> Job:
    weights, chance, random = [given[name].copy() for name in PARAMETERS], chances(), np.random.default_rng(0)
    x, y = given["x"], given["y"]

    def step() -> Any:
        used = (0, 2, 4) if random.random() >= chance() else (0, 4)
        inputs = [x]
        for at in used:
            out = inputs[-1] @ weights[at]
            out += weights[at + 1]
            inputs.append(np.maximum(out, 0, out=out) if at < 4 else out)
        off = inputs[-1] - y
        loss, ct = np.mean(off * off), off * np.float32(2 / off.size)
        for number, at in reversed(list(enumerate(used))):
            before = inputs[number]
            dw, db = before.T @ ct, ct.sum(0)
            if number:
                ct = (ct @ weights[at].T) * (before > 0)
            weights[at] -= np.float32(RATE) * dw
            weights[at + 1] -= np.float32(RATE) * db
        return loss

    return step


# ---- the autoencoder ------------------------------------------------------------------------------------------------
def code_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    (w,) = parameters(paddle, given, ("w",))

    @form.model
    def model(x: Any) -> Any:
        return paddle.matmul(paddle.tanh(x @ w), w, transpose_y=True)

    def loss_of(x: Any) -> Any:
        return ((model(x) - x) ** 2).mean()

    step, x = form.step(loss_of, [w], ADAM), paddle.to_tensor(given["x"])
    return lambda: step(x)


def code_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any) -> Any:
        return ((torch.tanh(x @ weights[0]) @ weights[0].T - x) ** 2).mean()

    step, x = torch_step(torch, compiled, loss_of, [given["w"]], ADAM), torch.from_numpy(given["x"])
    return lambda: step(x)


def code_jax(jax: Any, given: Arrays) -> Job:
    def loss_of(w: Any, x: Any) -> Any:
        return ((jax.numpy.tanh(x @ w) @ w.T - x) ** 2).mean()

    step, x = jax_step(jax, loss_of, given["w"], ADAM), jax.numpy.asarray(given["x"])
    return lambda: step(x)


def code_numpy(given: Arrays) -> Job:
    x, w = given["x"], given["w"].copy()
    optimizer = NumpyAdam([w])

    def step() -> Any:
        hidden = np.tanh(x @ w)
        off = hidden @ w.T - x
        loss, ct = np.mean(off * off), off * np.float32(2 / off.size)
        optimizer.step([ct.T @ hidden + x.T @ ((ct @ w) * (1 - hidden * hidden))])
        return loss

    return step


def code_work(batch: int, inputs: int, width: int) -> Work:
    return Work(2.0 * batch * inputs * width * 5, 4.0 * (batch * inputs + 6 * inputs * width))


ROWS = (
    Row(
        "mlp",
        "MLP 128-256-256-1 with a random layer, batch 64, SGD step",
        mlp_arrays,
        {"batch": 64, "inputs": 128, "width": 256},
        {"batch": 3, "inputs": 5, "width": 4},
        with_training(mlp_paddle) | with_torch(mlp_torch) | with_jax(mlp_jax) | with_numpy(mlp_numpy),
        lambda given: three(mlp_numpy(given)),
        mlp_work,
        tolerance=1e-3,
        limit=250e-6,
    ),
    Row(
        "autoencoder",
        "autoencoder 256x64->8 with a shared weight, Adam step",
        lambda random, batch, inputs, width: normal(random, x=(batch, inputs), w=(inputs, width)),
        {"batch": 256, "inputs": 64, "width": 8},
        {"batch": 5, "inputs": 4, "width": 3},
        with_training(code_paddle) | with_torch(code_torch) | with_jax(code_jax) | with_numpy(code_numpy),
        lambda given: three(code_numpy(given)),
        code_work,
        tolerance=1e-3,
        limit=42e-6,
    ),
)
