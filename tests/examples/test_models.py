"""The examples of models: each learns, the same in both modes, without a fallback, and is the same after reloading."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec

R = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """How a test trains an example, and what its model takes."""

    train: Callable[..., tuple[Any, list[float]]]
    inputs: Callable[[Any], list[paddle.Tensor]]
    steps: int
    falls_to: float = 0.8
    """The mean loss of the last fifth of the steps, in proportion to that of the first."""


def usual(module, steps, static):
    return module.train(steps, static=static)


def lenet(module, steps, static):
    return module.train(module.digits(64 * FEW), steps // FEW, static)


def classifier(name):
    def train(module, steps, static):
        model = module.network(name)
        return model, module.train(model, steps, 8, static)

    return train


def game(module, steps, static):
    model, losses = module.train(steps, static=static)
    return model, [caught for caught, _ in losses]


def agent(module, steps, static):
    policy, stood = module.train(steps, 8, 60, static=static)
    return policy, [1 / ticks for ticks in stood]


def first(name, count):
    """Return the inputs that the function `name` of the example makes, less its targets."""
    return lambda module: getattr(module, name)(np.random.default_rng(3), 4)[:count]


def noise(*shape):
    return lambda module: [paddle.to_tensor(R.normal(size=shape).astype("float32"))]


CASES = {
    "lenet": ("lenet", Case(lenet, noise(2, 1, 28, 28), 16)),
    "resnet18": ("image_classifier", Case(classifier("resnet18"), first("pictures", 1), 10, 0.95)),
    "resnet50": ("image_classifier", Case(classifier("resnet50"), first("pictures", 1), 10, 0.95)),
    "mobilenet_v2": ("image_classifier", Case(classifier("mobilenet_v2"), first("pictures", 1), 10, 0.95)),
    "tagger": ("tagger", Case(usual, first("sentences", 2), 60, 0.9)),
    "seq2seq": ("seq2seq", Case(usual, first("pairs", 2), 60)),
    "translation": ("translation", Case(usual, first("pairs", 2), 60)),
    "bert": ("bert", Case(usual, first("sequences", 1), 60, 0.95)),
    "vae": ("vae", Case(usual, noise(3, 64), 60)),
    "gan": ("gan", Case(game, noise(3, 4), 0)),
    "reinforce": ("reinforce", Case(agent, noise(3, 4), 10)),
    "word2vec": ("word2vec", Case(usual, lambda _: [paddle.to_tensor([1, 2]), paddle.to_tensor([[1, 3, 4]] * 2)], 60)),
    "yolo": ("yolo", Case(usual, first("pictures", 1), 25)),
}
HEAVY = ("resnet18", "resnet50", "mobilenet_v2")
LONG_TO_COMPILE = (*HEAVY, "lenet", "tagger", "seq2seq", "translation", "bert", "reinforce", "yolo")
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in CASES]
of_one_tier = pytest.mark.one_tier("Adam makes whole steps of gradients that are nothing but rounding")
"""Keys have a bias that moves no weight, and so has a convolution in front of a batch norm: its gradient is zero. With
float64 the tiers agree to 1e-10; losses are compared in tests/runtime/backends/cpu/test_models_natively.py."""
FEW = 2
"""Steps; the second one and those after it run as native code."""


@pytest.fixture(scope="module")
def trained(example):
    """Return the module of a case, its model after a few eager steps, and the losses; each is made once."""
    made: dict[str, Any] = {}

    def get(name):
        if name not in made:
            file, case = CASES[name]
            module = example(file)
            made[name] = (module, *case.train(module, FEW, False))
        return made[name]

    return get


def outputs(model, inputs):
    out = model(*inputs)
    return [t.numpy() for t in (out if isinstance(out, (list, tuple)) else [out])]


def assert_close(got, want, tolerance=1e-5):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@of_one_tier
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.soak if name == "resnet50" else pytest.mark.slow)
        for name in CASES
        if name != "gan"
    ],
)
def test_the_loss_falls(name, example):
    file, case = CASES[name]
    _, losses = case.train(example(file), case.steps, True)
    fifth = max(1, len(losses) // 5)
    assert np.mean(losses[-fifth:]) < case.falls_to * np.mean(losses[:fifth])


@of_one_tier
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG_TO_COMPILE else ()) for name in CASES]
)
def test_training_is_the_same_eager_and_static(name, trained):
    module, _, eager = trained(name)
    _, static = CASES[name][1].train(module, FEW, True)
    np.testing.assert_allclose(static, eager, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_the_same_eager_and_static(name, trained):
    module, model, _ = trained(name)
    model.eval()
    inputs = CASES[name][1].inputs(module)
    eager = outputs(model, inputs)
    static = paddle.jit.to_static(model.forward, full_graph=True)
    assert_close(outputs(static, inputs), eager)
    assert "no fallback" in str(static.explain())


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_gives_the_same(name, trained, tmp_path):
    module, model, _ = trained(name)
    model.eval()
    inputs = CASES[name][1].inputs(module)
    want = outputs(model, inputs)
    specs = [InputSpec([None, *([None] * (x.ndim - 1) if x.dtype == paddle.int64 else x.shape[1:])], x.dtype)
             for x in inputs]  # fmt: skip
    paddle.jit.save(model, tmp_path / "model", specs)
    assert_close(outputs(paddle.jit.load(tmp_path / "model"), inputs), want)


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_gives_the_same(name, trained, tmp_path):
    module, model, _ = trained(name)
    paddle.save(model.state_dict(), tmp_path / "model.pdparams")
    again, _ = CASES[name][1].train(module, 0, False)
    assert again.set_state_dict(paddle.load(tmp_path / "model.pdparams")) == ([], [])
    model.eval(), again.eval()
    inputs = CASES[name][1].inputs(module)
    assert_close(outputs(again, inputs), outputs(model, inputs), 0)


PROGRAMS = {
    **{file: ["--steps", "1"] for file, _ in CASES.values()},
    "lenet": ["--epochs", "1"],
    "image_classifier": ["--steps", "1", "--network", "mobilenet_v2"],
}


@of_one_tier
@pytest.mark.slow
@pytest.mark.parametrize("file", PROGRAMS)
def test_the_example_runs(file, example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [file, *PROGRAMS[file]])
    example(file).main()
    assert len(capsys.readouterr().out.splitlines()) >= 1
