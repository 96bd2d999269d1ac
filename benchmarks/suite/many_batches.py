"""Fifty batch sizes in a row: what a shape costs that was not seen before, or not just before."""

from typing import Any

import numpy as np

from benchmarks.suite.names import Jax, Numpy, Onnx
from benchmarks.suite.onnx_model import graph
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal


def arrays(random: np.random.Generator, most: int, inputs: int, width: int) -> Arrays:
    shapes = {"w1": (inputs, width), "b1": (width,), "w2": (width, width), "b2": (width,), "w3": (width, 1), "b3": (1,)}
    return normal(random, x=(most, inputs)) | layers(random, **shapes)


def work(most: int, inputs: int, width: int) -> Work:
    weights = inputs * width + width * width + width
    return Work(weights * most * (most + 1.0), 4.0 * weights)


def net(names: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    hidden = names.relu(names.linear(x, w1, b1))
    return names.linear(names.relu(names.linear(hidden, w2, b2)), w3, b3)


def batches(x: np.ndarray) -> list[np.ndarray]:
    """Return the first row, the first two rows, and so on."""
    return [x[: rows + 1].copy() for rows in range(len(x))]


def of_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    x, *weights = given.values()
    weights = list(map(paddle.to_tensor, weights))
    names = paddle.nn.functional

    def run(x: Any) -> Any:
        return net(names, x, *weights)

    run = static(run)
    inputs = [paddle.to_tensor(batch) for batch in batches(x)]
    return without_gradients(paddle, lambda: [run(batch) for batch in inputs])


def of_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    w1, b1, w2, b2, w3, b3 = (torch.from_numpy(array) for name, array in given.items() if name != "x")

    @compiled
    def run(x: Any) -> Any:
        hidden = torch.relu(torch.addmm(b1, x, w1))
        return torch.addmm(b3, torch.relu(torch.addmm(b2, hidden, w2)), w3)

    inputs = [torch.from_numpy(batch) for batch in batches(given["x"])]
    return inference(torch, lambda: [run(batch) for batch in inputs])


def of_jax(jax: Any, given: Arrays) -> Job:
    x, *weights = given.values()
    run = jax.jit(lambda x, *weights: net(Jax(jax), x, *weights))
    weights, inputs = list(map(jax.numpy.asarray, weights)), list(map(jax.numpy.asarray, batches(x)))
    return lambda: [run(batch, *weights) for batch in inputs]


def of_onnx(given: Arrays) -> tuple[Any, Any]:
    x, *weights = given.values()
    g = graph("net")
    g.input("x", x, ["batch", x.shape[1]])
    g.result(net(Onnx(g), "x", *weights))
    return g.model(), [{"x": batch} for batch in batches(x)]


def of_numpy(given: Arrays) -> Any:
    x, *weights = given.values()
    return [net(Numpy(), batch, *weights) for batch in batches(x)]


ROWS = (
    Row(
        "batches",
        "MLP inference, 50 batch sizes in a row",
        arrays,
        {"most": 50, "inputs": 128, "width": 256},
        {"most": 4, "inputs": 3, "width": 5},
        with_paddle(of_paddle) | with_torch(of_torch) | with_jax(of_jax) | with_onnx(of_onnx),
        of_numpy,
        work,
    ),
)
