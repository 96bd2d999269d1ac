"""Training steps of the examples as native code: the same losses as on the interpreter."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle

EXAMPLES = Path(__file__).parents[4] / "examples"
CASES = {
    "lenet": lambda m: m.train(m.digits(64), 3, True)[1],
    "vae": lambda m: m.train(4, static=True)[1],
    "gan": lambda m: [caught for caught, _ in m.train(3, static=True)[1]],
    "word2vec": lambda m: m.train(4, static=True)[1],
    "yolo": lambda m: m.train(3, static=True)[1],
    "tagger": lambda m: m.train(3, static=True)[1],
    "seq2seq": lambda m: m.train(3, static=True)[1],
    "bert": lambda m: m.train(3, static=True)[1],
    "translation": lambda m: m.train(3, static=True)[1],
}
QUICK = ("word2vec",)


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_an_example_learns_natively(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = importlib.import_module(name)
    losses = {}
    for backend in ("interpreter", "native"):
        monkeypatch.setenv("DY2ST_BACKEND", backend)
        np.random.seed(0)
        paddle.seed(0)
        losses[backend] = np.array([float(loss) for loss in CASES[name](module)])
    assert losses["native"].size >= 3
    np.testing.assert_allclose(losses["native"], losses["interpreter"], rtol=2e-3)
