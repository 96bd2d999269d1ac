"""What functions of a library write stays with its instance: whole train steps, buffers that functions share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import Tensor
from dy2st.nn import Layer, Linear, Sequential, Tanh
from dy2st.static import InputSpec
from tests.jit.c_library.libraries import Instance, built, needs_compiler

pytestmark = needs_compiler
SPEC = [InputSpec([None, 4], name="x"), InputSpec([None, 1], name="y")]
LOSS: list[Any] = [("float32", 0)]


def batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(16, 4)).astype("float32"), rng.normal(size=(16, 1)).astype("float32")) for _ in range(count)
    ]


def train_step() -> Callable[[Any, Any], Tensor]:
    """Return a step that has run once, so that the optimizer has its state."""
    paddle.seed(5)
    net = Sequential(Linear(4, 8), Tanh(), Linear(8, 1))
    optimizer = paddle.optimizer.AdamW(0.05, parameters=net.parameters())

    def step(x, y):
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step(*map(paddle.to_tensor, batches(1)[0]))
    return step


@pytest.mark.filterwarnings("ignore:a loaded layer will not change")
def test_a_whole_train_step_trains_as_in_python(tmp_path: Path) -> None:
    library = built(train_step(), SPEC, tmp_path)
    run = paddle.jit.to_static(train_step(), strict=True)
    data = batches(8)
    wanted = [float(run(*map(paddle.to_tensor, batch))) for batch in data]
    assert [float(library(batch, LOSS)[0]) for batch in data[:4]] == wanted[:4]
    library.save(tmp_path / "trained")
    assert [float(library(batch, LOSS)[0]) for batch in data[4:]] == wanted[4:]
    again = Instance(tmp_path, "model", weights=str(tmp_path / "trained").encode())
    fresh = Instance(tmp_path, "model")
    assert [float(again(batch, LOSS)[0]) for batch in data[4:]] == wanted[4:]
    assert float(fresh(data[0], LOSS)[0]) == wanted[0]
    for one in (library, again, fresh):
        one.free()


class Counter(Layer):
    """Counts what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter([3])
        self.register_buffer("seen", paddle.zeros([], "int64"))
        self.register_buffer("total", paddle.zeros([3, 7]))

    @paddle.jit.to_static(input_spec=[InputSpec([3, 7], name="x")])
    def forward(self, x):
        self.seen += 1
        self.total += x
        return self.total.sum()

    @paddle.jit.to_static(input_spec=[InputSpec([], "int64", name="more")])
    def count(self, more):
        return self.seen + more


def test_functions_share_what_they_write(tmp_path: Path) -> None:
    library = built(Counter(), None, tmp_path)
    assert library([np.array(5)], [("int64", 0)], function="count") == [5]
    x = np.arange(21, dtype=np.float32).reshape(3, 7)
    assert library([x], LOSS) == [x.sum()]
    assert library([x], LOSS) == [2 * x.sum()]
    assert library([np.array(5)], [("int64", 0)], function="count") == [7]
    library.free()


class Slope(Layer):
    """A function and its gradient."""

    @paddle.jit.to_static(input_spec=[InputSpec([None], name="x")])
    def forward(self, x):
        return paddle.sum(paddle.tanh(x) ** 3)

    @paddle.jit.to_static(input_spec=[InputSpec([None], name="x", stop_gradient=False)])
    def gradient(self, x):
        (slope,) = paddle.grad([self.forward(x)], [x])
        return slope


def test_gradients_are_a_function_too(tmp_path: Path) -> None:
    library = built(Slope(), None, tmp_path)
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    (slope,) = library([x], [("float32", 1)], function="gradient")
    np.testing.assert_allclose(slope, 3 * np.tanh(x) ** 2 * (1 - np.tanh(x) ** 2), rtol=1e-5, atol=1e-6)
    library.free()
