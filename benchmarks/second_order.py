"""The product of a Hessian with a vector, a Hessian of a function of 32 numbers, the Jacobians of a batch.

Taken is the processor time, as in `gradients.py`.
"""

import importlib
from collections.abc import Callable
from typing import Any

from gradients import Names, arrays, mlp, processor_time
from harness import Job, Row

NET = arrays((64, 128), (128, 256), (256,), (256, 256), (256,), (256, 1))
(DIRECTION,) = arrays((128, 256))
MATRIX, POINT = arrays((64, 32), (32,))


def loss(p: Names, weight: Any, rest: list[Any]) -> Any:
    """Return the loss of the MLP of `gradients.py` as a function of its first weight."""
    return mlp(p, rest[0], weight, *rest[1:])


def softmax_of(p: Names, matrix: Any, x: Any) -> Any:
    """Return log(sum(exp(tanh(matrix x))))."""
    return p.of.log(p.of.exp(p.tanh(matrix @ x)).sum())


def product(package: str, static: bool) -> Callable[[], Job]:
    """Make a Hessian-vector product with Paddle's names, by reverse over reverse."""

    def prepare() -> Job:
        p = Names(package)
        paddle = p.module
        x, weight, *rest = map(paddle.to_tensor, NET)
        weight.stop_gradient, direction = False, paddle.to_tensor(DIRECTION)

        def run(weight: Any) -> Any:
            (slope,) = paddle.grad(loss(p, weight, [x, *rest]), [weight], create_graph=True)
            return paddle.grad((slope * direction).sum(), [weight])[0]

        run = paddle.jit.to_static(run, full_graph=True) if static else run
        return lambda: run(weight)

    return prepare


def jax_product() -> Job:
    """Make a compiled product, by forward over reverse."""
    p = Names("jax")
    jax = p.module
    x, weight, *rest = map(p.of.asarray, NET)
    slope = jax.grad(lambda weight: loss(p, weight, [x, *rest]))
    run = jax.jit(lambda weight, direction: jax.jvp(slope, (weight,), (direction,))[1])
    direction = p.of.asarray(DIRECTION)
    return lambda: jax.block_until_ready(run(weight, direction))


def torch_product() -> Job:
    p = Names("torch")
    torch = p.module
    x, weight, *rest = map(torch.tensor, NET)
    weight.requires_grad_()
    direction = torch.tensor(DIRECTION)

    def run() -> Any:
        (slope,) = torch.autograd.grad(loss(p, weight, [x, *rest]), [weight], create_graph=True)
        return torch.autograd.grad((slope * direction).sum(), [weight])

    return run


def hessian(package: str) -> Callable[[], Job]:
    """Make a whole Hessian with Paddle's names."""

    def prepare() -> Job:
        p = Names(package)
        paddle = p.module
        matrix, x = paddle.to_tensor(MATRIX), paddle.to_tensor(POINT, stop_gradient=False)
        return lambda: paddle.autograd.hessian(softmax_of(p, matrix, x), x)[:]

    return prepare


def static_hessian() -> Job:
    """Make a Hessian in one Program: a loop over the rows."""
    p = Names("dy2st")
    paddle = p.module
    matrix, x = paddle.to_tensor(MATRIX), paddle.to_tensor(POINT, stop_gradient=False)

    @paddle.jit.to_static(full_graph=True)
    def run(x: Any) -> Any:
        return paddle.autograd.hessian(softmax_of(p, matrix, x), x)[:]

    return lambda: run(x)


def jax_hessian() -> Job:
    p = Names("jax")
    matrix, x = p.of.asarray(MATRIX), p.of.asarray(POINT)
    run = p.module.jit(p.module.hessian(lambda x: softmax_of(p, matrix, x)))
    return lambda: p.module.block_until_ready(run(x))


def torch_hessian() -> Job:
    p = Names("torch")
    matrix, x = p.module.tensor(MATRIX), p.module.tensor(POINT)
    run: Any = importlib.import_module("torch.autograd.functional").hessian
    return lambda: run(lambda x: softmax_of(p, matrix, x), x)


LAYERS = arrays((256, 8), (8, 32), (32, 8))


def jacobian(static: bool) -> Callable[[], Job]:
    """Make the Jacobians of 256 rows, 8 numbers to 8, with Paddle's names."""

    def prepare() -> Job:
        paddle = Names("dy2st").module
        x, first, second = map(paddle.to_tensor, LAYERS)
        x.stop_gradient = False

        def run(x: Any) -> Any:
            return paddle.autograd.jacobian(paddle.tanh(x @ first) @ second, x, batch_axis=0)[:]

        run = paddle.jit.to_static(run, full_graph=True) if static else run
        return lambda: run(x)

    return prepare


def jax_jacobian() -> Job:
    p = Names("jax")
    x, first, second = map(p.of.asarray, LAYERS)
    run = p.module.jit(p.module.vmap(p.module.jacrev(lambda row: p.tanh(row @ first) @ second)))
    return lambda: p.module.block_until_ready(run(x))


def torch_jacobian() -> Job:
    torch = Names("torch").module
    functions: Any = importlib.import_module("torch.func")
    x, first, second = map(torch.tensor, LAYERS)
    run = functions.vmap(functions.jacrev(lambda row: torch.tanh(row @ first) @ second))
    return lambda: run(x)


PRODUCTS = {
    "dy2st to_static": product("dy2st", static=True),
    "dy2st eager": product("dy2st", static=False),
    "jax jit": jax_product,
    "torch eager": torch_product,
    "paddle eager": product("paddle", static=False),
}
HESSIANS = {
    "dy2st to_static": static_hessian,
    "dy2st eager": hessian("dy2st"),
    "jax jit": jax_hessian,
    "torch eager": torch_hessian,
    "paddle eager": hessian("paddle"),
}


JACOBIANS = {
    "dy2st to_static": jacobian(static=True),
    "dy2st eager": jacobian(static=False),
    "jax jit": jax_jacobian,
    "torch eager": torch_jacobian,
}


def row(name: str, candidates: dict[str, Callable[[], Job]]) -> Row:
    timed = {who: processor_time(prepare) for who, prepare in candidates.items()}
    return Row(name, timed, repeats=9, reports_seconds=True)


ROWS = (
    row("Hessian-vector product of the MLP's loss, 128 x 256 weights", PRODUCTS),
    row("Hessian of a function of 32 numbers", HESSIANS),
    row("Jacobians of 256 rows, 8 numbers to 8", JACOBIANS),
)
