"""Derivatives of higher order and of many outputs: physics-informed nets, batched Jacobians, a Hessian."""

import importlib
from typing import Any

import numpy as np

from benchmarks.suite.forms import Form, with_training
from benchmarks.suite.sides import with_jax, with_paddle, with_torch
from benchmarks.suite.steps import ADAM, jax_step, parameters, torch_step
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal


# ---- the second derivative of tanh(x w + b) in a loss ---------------------------------------------------------------
def seed_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    w, b = weights = parameters(paddle, given, ("w", "b"))

    @form.model
    def model(x: Any) -> Any:
        return paddle.tanh(paddle.matmul(x, w) + b)

    def loss_of(x: Any) -> Any:
        y = model(x)
        first = paddle.grad(y, x, create_graph=True)[0]
        second = paddle.grad(first, x, create_graph=True)[0]
        return paddle.sqrt((second * second).sum())

    step, x = form.step(loss_of, weights, ADAM), paddle.to_tensor(given["x"], stop_gradient=False)
    return lambda: step(x)


def seed_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any) -> Any:
        w, b = weights

        def slope(x: Any) -> Any:
            return torch.func.grad(lambda x: torch.tanh(x @ w + b).sum())(x)

        second = torch.func.grad(lambda x: slope(x).sum())(x)
        return (second * second).sum().sqrt()

    step, x = torch_step(torch, compiled, loss_of, [given["w"], given["b"]], ADAM), torch.from_numpy(given["x"])
    return lambda: step(x)


def seed_jax(jax: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any) -> Any:
        w, b = weights
        slope = jax.grad(lambda x: jax.numpy.tanh(x @ w + b).sum())
        second = jax.grad(lambda x: slope(x).sum())(x)
        return jax.numpy.sqrt((second * second).sum())

    step, x = jax_step(jax, loss_of, [given["w"], given["b"]], ADAM), jax.numpy.asarray(given["x"])
    return lambda: step(x)


def seed_numpy(given: Arrays) -> Any:
    h = np.tanh(given["x"] @ given["w"] + given["b"])
    second = (-2 * h * (1 - h * h) * given["w"].sum(0)) @ given["w"].T
    return np.sqrt((second * second).sum())


# ---- Burgers' equation ----------------------------------------------------------------------------------------------
VISCOSITY = 0.01 / np.pi
FIELD = "w1", "b1", "w2", "b2", "w3", "b3"


def burgers_arrays(random: np.random.Generator, points: int, width: int) -> Arrays:
    shapes = {"w1": (2, width), "b1": (width,), "w2": (width, width), "b2": (width,), "w3": (width, 1), "b3": (1,)}
    return {"x": random.random((points, 2)).astype("float32")} | layers(random, **shapes)


def burgers_work(points: int, width: int) -> Work:
    """Count the middle layer only: its value, slope and second slope, and three times that for the gradient."""
    return Work(2.0 * points * width * width * 3 * 3, 0.0)


def burgers_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    w1, b1, w2, b2, w3, b3 = weights = parameters(paddle, given, FIELD)
    tanh = paddle.tanh

    @form.model
    def model(x: Any) -> Any:
        return paddle.matmul(tanh(paddle.matmul(tanh(paddle.matmul(x, w1) + b1), w2) + b2), w3) + b3

    def loss_of(x: Any) -> Any:
        u = model(x)
        slope = paddle.grad(u, x, create_graph=True)[0]
        along = paddle.grad(slope[:, 0], x, create_graph=True)[0]
        residual = slope[:, 1] + u[:, 0] * slope[:, 0] - VISCOSITY * along[:, 0]
        return (residual * residual).mean()

    step, x = form.step(loss_of, weights, ADAM), paddle.to_tensor(given["x"], stop_gradient=False)
    return lambda: step(x)


def field(tanh: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    return tanh(tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def residual(u: Any, slope: Any, along: Any) -> Any:
    return slope[:, 1] + u[:, 0] * slope[:, 0] - VISCOSITY * along[:, 0]


def burgers_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    def loss_of(weights: Any, x: Any) -> Any:
        def slope(x: Any) -> Any:
            return torch.func.grad(lambda x: field(torch.tanh, x, *weights).sum())(x)

        along = torch.func.grad(lambda x: slope(x)[:, 0].sum())(x)
        off = residual(field(torch.tanh, x, *weights), slope(x), along)
        return (off * off).mean()

    step, x = torch_step(torch, compiled, loss_of, [given[n] for n in FIELD], ADAM), torch.from_numpy(given["x"])
    return lambda: step(x)


def burgers_jax(jax: Any, given: Arrays) -> Job:
    tanh = jax.numpy.tanh

    def loss_of(weights: Any, x: Any) -> Any:
        slope = jax.grad(lambda x: field(tanh, x, *weights).sum())
        along = jax.grad(lambda x: slope(x)[:, 0].sum())(x)
        off = residual(field(tanh, x, *weights), slope(x), along)
        return (off * off).mean()

    step, x = jax_step(jax, loss_of, [given[n] for n in FIELD], ADAM), jax.numpy.asarray(given["x"])
    return lambda: step(x)


def burgers_numpy(given: Arrays) -> Any:
    """Return the loss, its derivatives by Taylor's rules of tanh, layer by layer."""
    x, w1, b1, w2, b2, w3, b3 = (given[name].astype("float64") for name in ("x", *FIELD))

    def tanh(value: Any, first: Any, second: Any) -> tuple[Any, Any, Any]:
        h = np.tanh(value)
        bend = 1 - h * h
        return h, bend * first, bend * second - 2 * h * bend * first * first

    slopes = []
    for axis in (0, 1):
        h, first, second = tanh(x @ w1 + b1, w1[axis] + 0 * (x @ w1), 0 * (x @ w1))
        h, first, second = tanh(h @ w2 + b2, first @ w2, second @ w2)
        slopes.append((h @ w3 + b3, first @ w3, second @ w3))
    (u, along, bent), (_, later, _) = slopes
    return ((later + u * along - VISCOSITY * bent) ** 2).mean()


# ---- Jacobians of a batch -------------------------------------------------------------------------------------------
def jacobian_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    x, w, v = map(paddle.to_tensor, given.values())
    x.stop_gradient = False

    def run(x: Any) -> Any:
        return paddle.autograd.jacobian(paddle.tanh(x @ w) @ v, x, batch_axis=0)[:]

    run = static(run)
    return lambda: run(x)


def jacobian_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    functions = importlib.import_module("torch.func")
    x, w, v = map(torch.from_numpy, given.values())
    run = compiled(functions.vmap(functions.jacrev(lambda row: torch.tanh(row @ w) @ v)))
    return lambda: run(x)


def jacobian_jax(jax: Any, given: Arrays) -> Job:
    x, w, v = map(jax.numpy.asarray, given.values())
    run = jax.jit(jax.vmap(jax.jacrev(lambda row, w, v: jax.numpy.tanh(row @ w) @ v), (0, None, None)))
    return lambda: run(x, w, v)


def jacobian_numpy(given: Arrays) -> Any:
    x, w, v = given.values()
    h = np.tanh(x @ w)
    return np.einsum("kj,bk,ik->bji", v, 1 - h * h, w)


# ---- a Hessian ------------------------------------------------------------------------------------------------------
def hessian_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    x, matrix = map(paddle.to_tensor, given.values())
    x.stop_gradient = False

    def run(x: Any) -> Any:
        return paddle.autograd.hessian(paddle.log(paddle.exp(paddle.tanh(paddle.matmul(matrix, x))).sum()), x)[:]

    run = static(run)
    return lambda: run(x)


def hessian_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    x, matrix = map(torch.from_numpy, given.values())
    run = compiled(torch.func.hessian(lambda x: torch.log(torch.exp(torch.tanh(matrix @ x)).sum())))
    return lambda: run(x)


def hessian_jax(jax: Any, given: Arrays) -> Job:
    names = jax.numpy
    x, matrix = map(names.asarray, given.values())
    run = jax.jit(jax.hessian(lambda x, matrix: names.log(names.exp(names.tanh(matrix @ x)).sum())))
    return lambda: run(x, matrix)


def hessian_numpy(given: Arrays) -> Any:
    x, matrix = (array.astype("float64") for array in given.values())
    h = np.tanh(matrix @ x)
    chance, bend = np.exp(h) / np.exp(h).sum(), 1 - h * h
    slope = chance * bend
    inner = np.diag(chance * (bend * bend - 2 * h * bend)) - np.outer(slope, slope)
    return matrix.T @ inner @ matrix


ROWS = (
    Row(
        "pinn-seed",
        "second derivative of a 2x2 layer in the loss, Adam step",
        lambda random, n: normal(random, x=(n, n), w=(n, n), b=(n, n)),
        {"n": 2},
        {"n": 3},
        with_training(seed_paddle) | with_torch(seed_torch) | with_jax(seed_jax),
        seed_numpy,
        tolerance=1e-3,
    ),
    Row(
        "pinn",
        "Burgers' equation, MLP 2-64-64-1, 256 points, Adam step",
        burgers_arrays,
        {"points": 256, "width": 64},
        {"points": 5, "width": 6},
        with_training(burgers_paddle) | with_torch(burgers_torch) | with_jax(burgers_jax),
        burgers_numpy,
        burgers_work,
        tolerance=1e-3,
    ),
    Row(
        "jacobian",
        "Jacobians of 256 rows, 8 numbers to 8",
        lambda random, rows, n, width: normal(random, x=(rows, n), w=(n, width), v=(width, n)),
        {"rows": 256, "n": 8, "width": 32},
        {"rows": 3, "n": 2, "width": 5},
        with_paddle(jacobian_paddle) | with_torch(jacobian_torch) | with_jax(jacobian_jax),
        jacobian_numpy,
        lambda rows, n, width: Work(2.0 * rows * n * n * width, 4.0 * rows * n * (n + 1)),
        tolerance=1e-3,
    ),
    Row(
        "hessian",
        "Hessian of a function of 32 numbers",
        lambda random, n, terms: normal(random, x=(n,), matrix=(terms, n)),
        {"n": 32, "terms": 64},
        {"n": 3, "terms": 4},
        with_paddle(hessian_paddle) | with_torch(hessian_torch) | with_jax(hessian_jax),
        hessian_numpy,
        lambda n, terms: Work(2.0 * n * n * terms, 4.0 * n * (n + terms)),
        tolerance=1e-3,
    ),
)
