"""Models that the tests of saving and loading use; a process without this file loads what they are saved to."""

from pathlib import Path
from typing import Any

import numpy as np

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.jit import TranslatedLayer
from dy2st.runtime.tracer.input_spec import InputSpec


class Refiner(paddle.nn.Layer):
    """A loop of unknown length, a branch, a tied weight, buffers of each kind, a method beside forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(3, 3)
        self.twin = paddle.nn.Linear(3, 3)
        self.twin.weight = self.linear.weight
        self.drop = paddle.nn.Dropout(0.5)
        self.register_buffer("calls", paddle.zeros([], "int64"))
        self.register_buffer("scratch", paddle.ones([3]), persistable=False)
        self.scale = paddle.to_tensor([2.0])

    def forward(self, x, goal=1.5):
        self.calls += 1
        turns = 0
        while x.abs().sum() > goal and turns < 5:
            x = paddle.tanh(self.twin(self.linear(x))) * self.scratch
            turns = turns + 1
        self.last = x
        return self.drop(x) * self.scale

    @paddle.jit.to_static(input_spec=[InputSpec([None, 3], "float32", "x")])
    def halve(self, x):
        while x.sum() > 1:
            x = x / 2
        return x


class Chooser(paddle.nn.Layer):
    """Two layers of which control flow runs one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(4, 1)
        self.second = paddle.nn.Linear(4, 1)

    def forward(self, x, both):
        out = self.first(x).mean()
        if both > 0:
            out = out + self.second(x).mean()
        return out


class Normed(paddle.nn.Layer):
    """Something that does not do the same in training and in use."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = paddle.nn.BatchNorm1D(4)

    def forward(self, x):
        return F.relu(self.norm(x))


def refiner(seed: int = 3) -> Refiner:
    """Return a Refiner whose weights repeat."""
    paddle.seed(seed)
    return Refiner()


X = InputSpec([None, 3], "float32", "x")


def same(a: Any, b: Any) -> None:
    """Check that two tensors have the same elements, to rounding."""
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def there_and_back(layer: Any, folder: Path, *specs: Any) -> TranslatedLayer:
    """Save a layer into a folder and load it again."""
    paddle.jit.save(layer, folder / "m", input_spec=list(specs) or None)
    return paddle.jit.load(folder / "m")
