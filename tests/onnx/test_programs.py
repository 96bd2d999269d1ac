"""Whole Programs in onnxruntime: random ones with their gradients, at inputs of several sizes; train steps."""

import warnings

import numpy as np
import pytest

import dy2st as paddle
from tests.generator.outcomes import calls_of, difference
from tests.generator.statements import program_of
from tests.onnx.watching import Watch


@pytest.fixture
def watch(monkeypatch):
    found = Watch()
    monkeypatch.setenv("DY2ST_BACKEND", "interpreter")
    found.start(monkeypatch)
    return found


@pytest.mark.slow
def test_random_programs_give_the_same(watch):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(40):
            difference(program_of(seed), calls_of(seed))
    assert not watch.faults, watch.faults[0]
    assert watch.counts["equal"] > 60


def test_train_steps_give_the_same(watch):
    paddle.seed(0)
    model = paddle.nn.Sequential(
        paddle.nn.Conv2D(1, 2, 3, padding=1, bias_attr=False),  # a bias there has the rounding of 0 as its gradient
        paddle.nn.BatchNorm2D(2), paddle.nn.ReLU(), paddle.nn.MaxPool2D(2), paddle.nn.Flatten(),
        paddle.nn.Linear(8, 6), paddle.nn.LayerNorm(6), paddle.nn.GELU(), paddle.nn.Linear(6, 3),
    )  # fmt: skip
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())

    @paddle.jit.to_static
    def step(x, y):
        loss = paddle.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    for size in (4, 4, 7, 2):
        step(paddle.randn([size, 1, 4, 4]), paddle.to_tensor(np.arange(size) % 3))
    assert not watch.faults, watch.faults[0]
    assert not watch.refused
    assert watch.counts["equal"] >= 2
