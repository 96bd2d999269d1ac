"""What one small operation costs: all overhead, since adding four numbers takes a few nanoseconds."""

import importlib
from collections.abc import Callable

import numpy as np
from harness import Goal, Job, Row

A = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
B = np.full((2, 2), 0.5, "float32")


def numpy_add() -> Job:
    return lambda: A + B


def eager_add(package: str, tape: bool) -> Callable[[], Job]:
    """Add two tensors with Paddle's names, `package` being dy2st or paddle."""

    def prepare() -> Job:
        paddle = importlib.import_module(package)
        x, y = (paddle.to_tensor(array, stop_gradient=not tape) for array in (A, B))
        return lambda: x + y

    return prepare


def eager_add_and_backward(package: str) -> Callable[[], Job]:
    def prepare() -> Job:
        paddle = importlib.import_module(package)
        x, y = (paddle.to_tensor(array, stop_gradient=False) for array in (A, B))

        def job() -> None:
            (x + y).sum().backward()
            x.clear_grad()
            y.clear_grad()

        return job

    return prepare


def torch_add(tape: bool) -> Callable[[], Job]:
    def prepare() -> Job:
        torch = importlib.import_module("torch")
        x, y = (torch.tensor(array, requires_grad=tape) for array in (A, B))
        return lambda: x + y

    return prepare


def torch_add_and_backward() -> Job:
    torch = importlib.import_module("torch")
    x, y = (torch.tensor(array, requires_grad=True) for array in (A, B))

    def job() -> None:
        (x + y).sum().backward()
        x.grad = y.grad = None

    return job


def jax_add() -> Job:
    jnp = importlib.import_module("jax.numpy")
    x, y = jnp.asarray(A), jnp.asarray(B)
    return lambda: (x + y).block_until_ready()


def ten_adds(x, y):
    x = x + y
    x = y + x
    x = x + y
    x = y + x
    x = x + y
    x = y + x
    x = x + y
    x = y + x
    x = x + y
    return y + x


def hundred_adds(x, y):
    x = ten_adds(ten_adds(ten_adds(ten_adds(ten_adds(x, y), y), y), y), y)
    return ten_adds(ten_adds(ten_adds(ten_adds(ten_adds(x, y), y), y), y), y)


def static_adds(package: str) -> Callable[[], Job]:
    def prepare() -> Job:
        paddle = importlib.import_module(package)
        x, y = paddle.to_tensor(A), paddle.to_tensor(B)
        static = paddle.jit.to_static(hundred_adds)
        return lambda: static(x, y)

    return prepare


ROWS = (
    Row(
        "eager add of 2x2 float32, recorded on the tape",
        {
            "dy2st": eager_add("dy2st", tape=True),
            "numpy (no tape)": numpy_add,
            "torch": torch_add(tape=True),
            "paddle": eager_add("paddle", tape=True),
        },
        Goal("eager add with tape", lambda median: median["dy2st"], 4e-6),
    ),
    Row(
        "eager add of 2x2 float32, no gradient wanted",
        {
            "dy2st": eager_add("dy2st", tape=False),
            "numpy": numpy_add,
            "torch": torch_add(tape=False),
            "jax": jax_add,
            "paddle": eager_add("paddle", tape=False),
        },
    ),
    Row(
        "eager add, sum and backward",
        {
            "dy2st": eager_add_and_backward("dy2st"),
            "torch": torch_add_and_backward,
            "paddle": eager_add_and_backward("paddle"),
        },
    ),
    Row(
        "one op of a to_static call with 100 adds",
        {
            "dy2st": static_adds("dy2st"),
            "numpy": lambda: lambda: hundred_adds(A, B),
            "paddle": static_adds("paddle"),
        },
        Goal("an op beyond NumPy's", lambda median: median["dy2st"] - median["numpy"], 0.7e-6),
        per=100,
    ),
)
