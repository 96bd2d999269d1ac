"""Which Programs take requests as one batch: only those whose rows are proved to be apart; runs show that they are."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.serving.entries import Entry, load_entries
from dy2st.static import InputSpec
from dy2st.vision import models

F = paddle.nn.functional


def entry_of(tmp_path: Any, layer: Any, *specs: Any) -> Entry:
    if isinstance(layer, paddle.nn.Layer):
        layer.eval()
    return load_entries("m", paddle.jit.save(layer, tmp_path / "m", input_spec=list(specs)))["m"]


def image(side: int) -> InputSpec:
    return InputSpec([None, 3, side, side])


ROWS = InputSpec([None, 4])
SEQUENCES = InputSpec([None, None, 16])
APART = {
    "linear": (lambda: paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.Softmax()), ROWS),
    "resnet": (lambda: models.resnet18(num_classes=5), image(16)),
    "mobilenet": (lambda: models.mobilenet_v2(scale=0.25, num_classes=5), image(16)),
    "transformer": (
        lambda: paddle.nn.TransformerEncoder(paddle.nn.TransformerEncoderLayer(16, 2, 8), 1), SEQUENCES),
    "embedding": (lambda: paddle.nn.Embedding(9, 4), InputSpec([None, None], "int64")),
    "order": (lambda: paddle.jit.to_static(lambda x: x.sort(1).cumsum(1).argmax(1)), ROWS),
    "loop": (lambda: paddle.jit.to_static(scaled), ROWS),
}  # fmt: skip


def scaled(x: Any) -> Any:
    for i in range(x.shape[1]):
        x = F.relu(x) + i
    return x


@pytest.mark.parametrize("name", APART)
def test_rows_that_are_apart(name: str, tmp_path: Any) -> None:
    make, spec = APART[name]
    entry = entry_of(tmp_path, make(), spec)
    assert entry.apart == ""
    rng = np.random.default_rng(0)
    (slot,) = entry.inputs
    shape = [5 if i == 0 else 7 if n < 0 else n for i, n in enumerate(slot.shape)]
    x = rng.integers(0, 9, shape) if slot.datatype == "INT64" else rng.normal(size=shape).astype("float32")
    whole = entry.run([x])["output"]
    for i in range(5):
        np.testing.assert_allclose(entry.run([x[i : i + 1]])["output"], whole[i : i + 1], 1e-4, 1e-5)


def branching(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x


def until(x: Any) -> Any:
    while x.max() < 10:
        x = x * 2
    return x


MEETING = {
    "mean": (lambda x: x - x.mean(0), "works along the batch"),
    "branch": (branching, "works along the batch"),
    "loop": (until, "works along the batch"),
    "count": (lambda x: x / x.shape[0], "works along the batch"),
    "numbers": (lambda x: x + paddle.arange(x.shape[0], dtype="float32").unsqueeze(1), "works along the batch"),
    "flip": (lambda x: x.flip(0), "works along the batch"),
    "sort": (lambda x: x.sort(0), "works along the batch"),
    "swap": (lambda x: x.reshape([4, -1]).t(), "does not follow its row"),
    "gram": (lambda x: x @ x.t(), "batch"),
    "first": (lambda x: x[:1] + x, "one symbolic extent"),
    "sum": (lambda x: x.sum(), "tensors with a first axis"),
    "constant": (lambda x: paddle.ones([3, 4]), "one symbolic extent"),
    "half": (lambda x: x.reshape([-1, 8]).reshape([-1, 4]), "one symbolic extent"),
    "random": (lambda x: x + paddle.rand([4]), "random numbers"),
    "softmax": (lambda x: F.softmax(x, axis=0), "works along the batch"),
}


@pytest.mark.parametrize("name", MEETING)
def test_rows_that_meet_or_may(name: str, tmp_path: Any) -> None:
    function, reason = MEETING[name]
    assert reason in entry_of(tmp_path, paddle.jit.to_static(function), ROWS).apart


def test_two_inputs_whose_rows_are_crossed(tmp_path: Any) -> None:
    crossed = paddle.jit.to_static(lambda x, y: (x.unsqueeze(1) * y.unsqueeze(0)).sum(1))
    assert entry_of(tmp_path, crossed, InputSpec([None]), InputSpec([None])).apart


def test_state_that_is_written(tmp_path: Any) -> None:
    class Counts(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", paddle.zeros([1]))

        def forward(self, x: Any) -> Any:
            self.n += 1
            return x * 2

    assert entry_of(tmp_path, Counts(), ROWS).apart == "it writes to its state"
