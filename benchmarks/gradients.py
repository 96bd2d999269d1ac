"""The cost of derivatives over the cost of what is differentiated: MLP, LSTM in a `while`, convolutions, a PINN.

A "gradient" is value and gradient together. JAX has no reverse mode through `while_loop`: its LSTM is a `scan`. Taken
is the processor time of all threads, so that other processes do not count; with OMP_NUM_THREADS=1 and
XLA_FLAGS=--xla_cpu_multi_thread_eigen=false no thread waits for another.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Goal, Job, Row

RANDOM = np.random.default_rng(0)


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return arrays of small random numbers."""
    return [(RANDOM.standard_normal(shape) * 0.2).astype("float32") for shape in shapes]


# ---- the models: functions of a package's names and of arrays -------------------------------------------------------
class Names:
    """What the models need of a package, by the names that most of them share."""

    def __init__(self, package: str):
        self.package = package
        self.module: Any = importlib.import_module(package)
        if package == "jax":
            self.of, self.functional = importlib.import_module("jax.numpy"), self.module.nn
        else:
            self.of, self.functional = self.module, importlib.import_module(f"{package}.nn.functional")
        self.tanh, self.sigmoid, self.relu = self.of.tanh, self.functional.sigmoid, self.functional.relu

    def conv(self, x: Any, w: Any) -> Any:
        """Convolve with a stride of 2."""
        if self.package == "jax":
            return self.module.lax.conv_general_dilated(x, w, (2, 2), "VALID")
        return self.functional.conv2d(x, w, stride=2)


def mlp(p: Names, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any) -> Any:
    """64 rows through two layers of 256 units."""
    return ((p.tanh(p.tanh(x @ w1 + b1) @ w2 + b2) @ w3) ** 2).mean()


MLP = mlp, arrays((64, 128), (128, 256), (256,), (256, 256), (256,), (256, 1)), 1


def lstm(p: Names, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    """50 steps of an LSTM of 64 units, 16 rows."""

    def step(h: Any, c: Any, row: Any) -> tuple[Any, Any]:
        z = row @ w + h @ u + b
        i, f, g, o = z[:, :64], z[:, 64:128], z[:, 128:192], z[:, 192:]
        c = p.sigmoid(f) * c + p.sigmoid(i) * p.tanh(g)
        return p.sigmoid(o) * p.tanh(c), c

    if p.package == "jax":
        h, c = p.module.lax.scan(lambda s, row: (step(s[0], s[1], row), None), (h, c), x)[0]
    else:
        t = 0
        while t < x.shape[0]:
            h, c = step(h, c, x[t])
            t += 1
    return (h * h).mean()


LSTM = lstm, arrays((50, 16, 32), (16, 64), (16, 64), (32, 256), (64, 256), (256,)), 3


def convolutions(p: Names, x: Any, k1: Any, k2: Any, w: Any) -> Any:
    """16 pictures of 28 x 28 through two convolutions and a linear layer."""
    y = p.relu(p.conv(p.relu(p.conv(x, k1)), k2))
    return ((y.reshape((x.shape[0], -1)) @ w) ** 2).mean()


CONVOLUTIONS = convolutions, arrays((16, 1, 28, 28), (8, 1, 3, 3), (16, 8, 3, 3), (576, 10)), 1


def field(p: Names, xt: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any) -> Any:
    """Return the sum over points of what a network gives there."""
    return (p.tanh(p.tanh(xt @ w1 + b1) @ w2 + b2) @ w3).sum()


def pinn(p: Names, xt: Any, *weights: Any) -> Any:
    """The mean square residual of the wave equation at 128 points: second derivatives of a network of 2 x 32 units."""

    def along(axis: int) -> Any:
        if p.package == "jax":
            first = lambda xt: p.module.grad(lambda z: field(p, z, *weights))(xt)[:, axis].sum()  # noqa: E731
            return p.module.grad(first)(xt)[:, axis]
        grad = p.module.autograd.grad if p.package == "torch" else p.module.grad
        (slope,) = grad(field(p, xt, *weights), [xt], create_graph=True)
        return grad(slope[:, axis].sum(), [xt], create_graph=True)[0][:, axis]

    return ((along(1) - along(0)) ** 2).mean()


PINN = pinn, arrays((128, 2), (2, 32), (32,), (32, 32), (32,), (32, 1)), 1


CALLS = 5


def processor_time(prepare: Callable[[], Job]) -> Callable[[], Job]:
    """Return what prepares a job that reports the processor time of a call."""

    def prepared() -> Job:
        job = prepare()
        for _ in range(2):
            job()

        def measured() -> float:
            start = time.process_time()
            for _ in range(CALLS):
                job()
            return (time.process_time() - start) / CALLS

        return measured

    return prepared


# ---- function and gradient by package -------------------------------------------------------------------------------
Model = tuple[Callable[..., Any], list[np.ndarray], int]


def paddle_job(package: str, model: Model, gradient: bool, static: bool) -> Callable[[], Job]:
    """Make a run with Paddle's names, `package` being dy2st or paddle."""

    def prepare() -> Job:
        p, (function, given, first) = Names(package), model
        paddle = p.module
        needs = range(0 if function is pinn else first, len(given))
        tensors = [paddle.to_tensor(x, stop_gradient=i not in needs) for i, x in enumerate(given)]

        def value(*tensors: Any) -> Any:
            return function(p, *tensors)

        def slopes(*tensors: Any) -> Any:
            y = function(p, *tensors)
            return y, paddle.grad(y, list(tensors[first:]))

        run = slopes if gradient else value
        run = paddle.jit.to_static(run, full_graph=True) if static else run
        if gradient or function is pinn:
            return lambda: run(*tensors)

        def without() -> None:
            with paddle.no_grad():
                run(*tensors)

        return without

    return prepare


def jax_job(model: Model, gradient: bool) -> Callable[[], Job]:
    """Make a compiled run."""

    def prepare() -> Job:
        p, (function, given, first) = Names("jax"), model
        arrays = [p.of.asarray(x) for x in given]

        def value(*arrays: Any) -> Any:
            return function(p, *arrays)

        numbers = tuple(range(first, len(given)))
        run = p.module.jit(p.module.value_and_grad(value, numbers) if gradient else value)
        return lambda: p.module.block_until_ready(run(*arrays))

    return prepare


def torch_job(model: Model, gradient: bool, compiled: bool) -> Callable[[], Job]:
    """Make an eager or compiled run."""

    def prepare() -> Job:
        p, (function, given, first) = Names("torch"), model
        torch = p.module
        needs = range(0 if function is pinn else first, len(given))
        tensors = [torch.tensor(x, requires_grad=i in needs) for i, x in enumerate(given)]

        def value(*tensors: Any) -> Any:
            return function(p, *tensors)

        run = torch.compile(value, fullgraph=True) if compiled else value
        if gradient:
            return lambda: torch.autograd.grad(run(*tensors), tensors[first:])
        if function is pinn:
            return lambda: run(*tensors)

        def without() -> None:
            with torch.no_grad():
                run(*tensors)

        return without

    return prepare


def row(name: str, model: Model, compiled: bool = True) -> Row:
    """Make the row of a model: each package's function and gradient."""
    candidates: dict[str, Callable[[], Job]] = {}
    for what in ("function", "gradient"):
        candidates[f"dy2st {what}"] = paddle_job("dy2st", model, what == "gradient", static=True)
        candidates[f"dy2st eager {what}"] = paddle_job("dy2st", model, what == "gradient", static=False)
        candidates[f"jax jit {what}"] = jax_job(model, what == "gradient")
        candidates[f"torch eager {what}"] = torch_job(model, what == "gradient", compiled=False)
        if compiled:
            candidates[f"torch compile {what}"] = torch_job(model, what == "gradient", compiled=True)
        candidates[f"paddle eager {what}"] = paddle_job("paddle", model, what == "gradient", static=False)

    def ratio(medians: Any) -> float:
        return medians["dy2st gradient"] / medians["dy2st function"]

    goal = Goal("gradient over function", ratio, 3.0, lambda figure: f"{figure:.2f} x")
    timed = {who: processor_time(prepare) for who, prepare in candidates.items()}
    return Row(name, timed, goal, repeats=9, reports_seconds=True)


ROWS = (
    row("MLP, 64 x 128 through 256 and 256 units", MLP),
    row("LSTM in a while, 50 steps, 16 rows, 64 units", LSTM),
    row("two convolutions, 16 pictures", CONVOLUTIONS),
    row("PINN, 128 points, second derivatives", PINN, compiled=False),
)
