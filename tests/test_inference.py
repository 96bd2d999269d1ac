"""Predictors of saved models."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import inference

X = np.array([[1.0, -2.0]], "float32")


def test_a_predictor_runs_a_saved_model(tmp_path):
    layer = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.Dropout(0.5))
    paddle.jit.save(layer, str(tmp_path / "m"), input_spec=[paddle.static.InputSpec([None, 2])])
    config = inference.Config(str(tmp_path / "m.dy2st"))
    config.disable_gpu()
    config.enable_memory_optim()
    assert not config.use_gpu()
    predictor = inference.create_predictor(config)
    (name,) = predictor.get_input_names()
    handle = predictor.get_input_handle(name)
    handle.reshape([1, 2])
    handle.copy_from_cpu(X)
    assert predictor.run() is True
    wanted = X @ layer[0].weight.numpy() + layer[0].bias.numpy()
    (out,) = predictor.get_output_names()
    np.testing.assert_allclose(predictor.get_output_handle(out).copy_to_cpu(), wanted, rtol=1e-5)
    np.testing.assert_allclose(predictor.clone().run([X])[0].numpy(), wanted, rtol=1e-5)
    assert (handle.name(), handle.shape(), handle.type()) == (name, [1, 2], np.dtype("float32"))


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"needs the path of a model: Config\(path\)"):
        inference.create_predictor(inference.Config())
    with pytest.raises(AttributeError, match="a Config has no 'summarize'"):
        _ = inference.Config().summarize
    with pytest.raises(FileNotFoundError):
        inference.create_predictor(inference.Config(str(tmp_path / "none")))
