"""What memory bounds: gelu(layer_norm), softmax, a chain of twelve operations; 4M numbers each."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite.names import Numpy
from benchmarks.suite.pictures import jax_inference, onnx_inference
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.workload import Arrays, Job, Row, Side, Work, normal

SIZES, TINY = {"rows": 4096, "width": 1024}, {"rows": 3, "width": 17}


def work(rows: int, width: int) -> Work:
    return Work(0.0, 8.0 * rows * width)


def softmax(names: Any, x: Any) -> Any:
    return names.softmax(x)


def norm_gelu(names: Any, x: Any, w: Any, b: Any) -> Any:
    return names.gelu(names.layer_norm(x, w, b))


def chain(names: Any, x: Any) -> Any:
    """Twelve operations, element by element."""
    for _ in range(3):
        x = names.add(names.add(names.scale(names.tanh(x), 0.5), x), np.float32(-0.1))
    return x


class Functional:
    """The operations of torch, Paddle and dy2st."""

    def __init__(self, package: Any):
        self.functional, self.tanh = package.nn.functional, package.tanh
        self.gelu = self.functional.gelu

    def add(self, x: Any, y: Any) -> Any:
        return x + (float(y) if isinstance(y, np.floating) else y)

    def scale(self, x: Any, factor: float) -> Any:
        return x * factor

    def softmax(self, x: Any) -> Any:
        return self.functional.softmax(x, -1)

    def layer_norm(self, x: Any, w: Any, b: Any) -> Any:
        return self.functional.layer_norm(x, [w.shape[0]], w, b)


def sides(model: Callable[..., Any]) -> dict[str, Side]:
    """Make every package's side of a model of (names, x, *weights)."""

    def of_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
        x, *weights = map(paddle.to_tensor, given.values())
        names = Functional(paddle)

        def run(x: Any) -> Any:
            return model(names, x, *weights)

        return without_gradients(paddle, static(run), x)

    def of_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
        x, *weights = map(torch.from_numpy, given.values())
        names = Functional(torch)
        return inference(torch, compiled(lambda x: model(names, x, *weights)), x)

    return (
        with_paddle(of_paddle)
        | with_torch(of_torch)
        | with_jax(lambda jax, given: jax_inference(jax, model, list(given.values())))
        | with_onnx(lambda given: onnx_inference(model, list(given.values())))
    )


def row(name: str, title: str, model: Callable[..., Any], weights: bool = False) -> Row:
    def arrays(random: np.random.Generator, rows: int, width: int) -> Arrays:
        return normal(random, x=(rows, width), **({"w": (width,), "b": (width,)} if weights else {}))

    def reference(given: Arrays) -> Any:
        return model(Numpy(), *given.values())

    return Row(name, title, arrays, SIZES, TINY, sides(model), reference, work, of_copy=0.8)


ROWS = (
    row("norm-gelu", "gelu(layer_norm) of 4096x1024", norm_gelu, weights=True),
    row("softmax", "softmax of 4096x1024", softmax),
    row("chain", "12 operations on 4M numbers", chain),
)
