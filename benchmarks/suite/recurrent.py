"""An LSTM over 100 steps, step by step in a `while`, beside the fused operators of other packages; its gradients."""

from typing import Any

import numpy as np

from benchmarks.suite.forms import Form, with_training
from benchmarks.suite.names import Jax, Numpy
from benchmarks.suite.onnx_model import graph
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal


def arrays(random: np.random.Generator, turns: int, batch: int, width: int) -> Arrays:
    """Make an input, a state, and the weights of the gates i, f, g, o."""
    gates = 4 * width
    weights = layers(random, w=(width, gates), u=(width, gates), b=(gates,))
    return normal(random, x=(turns, batch, width), h=(batch, width), c=(batch, width)) | weights


def work(turns: int, batch: int, width: int) -> Work:
    weights = 8 * width * width
    return Work(turns * batch * (2.0 * weights + 30 * width), 4.0 * (weights + turns * batch * width))


def work_with_gradients(turns: int, batch: int, width: int) -> Work:
    forward = work(turns, batch, width)
    return Work(3 * forward.flops, 3 * forward.bytes)


def step(names: Any, z: Any, c: Any) -> tuple[Any, Any]:
    """Return the next h and c from the sum that goes into the gates."""
    n = c.shape[1]
    i, f, g, o = z[:, :n], z[:, n : 2 * n], z[:, 2 * n : 3 * n], z[:, 3 * n :]
    c = names.sigmoid(f) * c + names.sigmoid(i) * names.tanh(g)
    return names.sigmoid(o) * names.tanh(c), c


def lstm(names: Any, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    """Return h after all steps."""
    t = 0
    while t < x.shape[0]:
        h, c = step(names, x[t] @ w + h @ u + b, c)
        t += 1
    return h


def lstm_numpy(given: Arrays) -> Any:
    return lstm(Numpy(), *given.values())


# ---- the function ---------------------------------------------------------------------------------------------------
def lstm_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    x, *state = map(paddle.to_tensor, given.values())
    functional = paddle.nn.functional

    def run(x: Any) -> Any:
        return lstm(functional, x, *state)

    return without_gradients(paddle, static(run), x)


def lstm_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    module, x, state = fused(torch, given)
    return inference(torch, lambda: module(x, state)[1][0][0])


def fused(torch: Any, given: Arrays) -> tuple[Any, Any, Any]:
    """Return torch's own LSTM with these weights, its input and its state."""
    t = {name: torch.from_numpy(x) for name, x in given.items()}
    module = torch.nn.LSTM(given["w"].shape[0], given["h"].shape[1])
    weights = {"weight_ih_l0": t["w"].T, "weight_hh_l0": t["u"].T, "bias_ih_l0": t["b"], "bias_hh_l0": 0 * t["b"]}
    module.load_state_dict(weights)
    return module, t["x"], (t["h"][None], t["c"][None])


def lstm_jax(jax: Any, given: Arrays) -> Job:
    run = jax.jit(lambda *tensors: scan(jax, *tensors))
    tensors = [jax.numpy.asarray(x) for x in given.values()]
    return lambda: run(*tensors)


def scan(jax: Any, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    """Return h after all steps; what needs no state is one product."""
    names = Jax(jax)

    def turn(state: Any, z: Any) -> Any:
        return step(names, z + state[0] @ u, state[1]), None

    return jax.lax.scan(turn, (h, c), x @ w + b)[0][0]


def lstm_onnx(given: Arrays) -> tuple[Any, Arrays]:
    g = graph("lstm")
    x, h, c = (g.input(name, given[name]) for name in ("x", "h", "c"))
    h, c = (g.add("Unsqueeze", state, g.constant(np.array([0]))) for state in (h, c))
    w, u = (g.constant(_iofc(given[name]).T[None].copy()) for name in ("w", "u"))
    b = g.constant(np.concatenate([_iofc(given["b"]), 0 * given["b"]])[None])
    width = given["h"].shape[1]
    _, last, _ = g.add("LSTM", x, w, u, b, "", h, c, results=3, hidden_size=width)
    g.result(g.add("Squeeze", last, g.constant(np.array([0]))))
    return g.model(), {name: given[name] for name in ("x", "h", "c")}


def _iofc(gates: np.ndarray) -> np.ndarray:
    """Order i, f, g, o as ONNX does: i, o, f, g."""
    i, f, g, o = np.split(gates, 4, -1)
    return np.concatenate([i, o, f, g], -1)


# ---- with gradients -------------------------------------------------------------------------------------------------
def slopes_paddle(form: Form, given: Arrays) -> Job:
    paddle = form.paddle
    tensors = {name: paddle.to_tensor(x, stop_gradient=name in ("x", "h", "c")) for name, x in given.items()}
    weights = [tensors[name] for name in ("w", "u", "b")]
    functional = paddle.nn.functional

    @form.model
    def model(x: Any) -> Any:
        return lstm(functional, x, tensors["h"], tensors["c"], *weights)

    @form.whole
    def run(x: Any) -> Any:
        h = model(x)
        loss = (h * h).mean()
        return loss, paddle.grad(loss, weights)

    return lambda: run(tensors["x"])


def slopes_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    module, x, state = fused(torch, given)
    weights = [module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0]

    def run() -> Any:
        h = module(x, state)[1][0][0]
        loss = (h * h).mean()
        w, u, b = torch.autograd.grad(loss, weights)
        return loss, w.T, u.T, b

    return run


def slopes_jax(jax: Any, given: Arrays) -> Job:
    def loss(w: Any, u: Any, b: Any, x: Any, h: Any, c: Any) -> Any:
        h = scan(jax, x, h, c, w, u, b)
        return (h * h).mean()

    run = jax.jit(jax.value_and_grad(loss, (0, 1, 2)))
    tensors = [jax.numpy.asarray(given[name]) for name in ("w", "u", "b", "x", "h", "c")]
    return lambda: run(*tensors)


def loss_numpy(given: Arrays) -> Any:
    h = lstm_numpy(given)
    return (h * h).mean()


TINY = {"turns": 3, "batch": 2, "width": 5}
FUNCTION = with_paddle(lstm_paddle) | with_torch(lstm_torch, compiled=False) | with_jax(lstm_jax) | with_onnx(lstm_onnx)
GRADIENT = (
    with_training(slopes_paddle, minimize=False) | with_torch(slopes_torch, compiled=False) | with_jax(slopes_jax)
)
"""The sides of all sizes: tests, which make every job small, run each of them once."""


def function_row(batch: int, width: int) -> Row:
    return Row(
        f"lstm-{batch}x{width}",
        f"LSTM in a while, 100 steps, {batch} x {width}",
        arrays,
        {"turns": 100, "batch": batch, "width": width},
        TINY,
        FUNCTION,
        lstm_numpy,
        work,
    )


def gradient_row(batch: int, width: int) -> Row:
    return Row(
        f"lstm-gradient-{batch}x{width}",
        f"LSTM in a while with gradients, 100 steps, {batch} x {width}",
        arrays,
        {"turns": 100, "batch": batch, "width": width},
        TINY,
        GRADIENT,
        loss_numpy,
        work_with_gradients,
        tolerance=1e-3,
        goal_of_model=0.5,
    )


ROWS = (
    *(function_row(batch, width) for batch, width in ((1, 64), (1, 256), (32, 64), (32, 256))),
    *(gradient_row(batch, width) for batch, width in ((1, 64), (32, 64), (32, 256))),
)
