"""The product of a Hessian with a vector; whole Hessians and Jacobians are in suite/derivatives.py.

Taken is the processor time, as in `gradients.py`.
"""

from collections.abc import Callable
from typing import Any

from gradients import Names, arrays, mlp, processor_time
from harness import Job, Row

NET = arrays((64, 128), (128, 256), (256,), (256, 256), (256,), (256, 1))
(DIRECTION,) = arrays((128, 256))


def loss(p: Names, weight: Any, rest: list[Any]) -> Any:
    """Return the loss of the MLP of `gradients.py` as a function of its first weight."""
    return mlp(p, rest[0], weight, *rest[1:])


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


PRODUCTS = {
    "dy2st to_static": product("dy2st", static=True),
    "dy2st eager": product("dy2st", static=False),
    "jax jit": jax_product,
    "torch eager": torch_product,
    "paddle eager": product("paddle", static=False),
}


def row(name: str, candidates: dict[str, Callable[[], Job]]) -> Row:
    timed = {who: processor_time(prepare) for who, prepare in candidates.items()}
    return Row(name, timed, repeats=9, reports_seconds=True)


ROWS = (row("Hessian-vector product of the MLP's loss, 128 x 256 weights", PRODUCTS),)
