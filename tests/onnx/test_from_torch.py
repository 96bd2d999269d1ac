"""A module that torch exported to ONNX runs here, at batch sizes and lengths that it was not exported with, and trains.

`tests/data/torch/classifier.onnx` is the output of `torch.onnx.export(dynamo=True)` (`tests/peers/torch_states.py`).
"""

from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
DATA = Path(__file__).parents[1] / "data" / "torch"


def test_it_gives_what_torch_gives() -> None:
    layer = paddle.onnx.load(DATA / "classifier.onnx")
    words = np.arange(12).reshape(3, 4) % 11
    wanted = np.load(DATA / "outputs.npz")["classifier"]
    np.testing.assert_allclose(layer(paddle.to_tensor(words)).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_one_program_serves_every_batch_and_length() -> None:
    layer = paddle.onnx.load(DATA / "classifier.onnx")
    for shape in ((3, 4), (2, 7), (5, 2), (1, 1)):
        words = np.arange(np.prod(shape)).reshape(shape) % 11
        assert layer(paddle.to_tensor(words)).shape == [shape[0], 3]
    assert len(layer.forward.program_cache) == 1


def test_its_weights_have_torch_s_names_and_gradients() -> None:
    layer = paddle.onnx.load(DATA / "classifier.onnx")
    assert layer.embedding.weight.shape == [11, 8]
    layer(paddle.to_tensor(np.arange(12).reshape(3, 4) % 11)).sum().backward()
    assert np.abs(layer.embedding.weight.grad.numpy()).sum() > 0
