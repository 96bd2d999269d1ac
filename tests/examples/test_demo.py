"""The demo, small: a few training steps in both modes, the comparison, the files."""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
pytest.importorskip("sklearn", reason="the demo's data set comes with scikit-learn")


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return importlib.import_module("demo")


@pytest.fixture(scope="module")
def data(demo):
    every = demo.digits()
    return demo.Data(every.x[:192], every.y[:192], every.x_test[:64], every.y_test[:64])


@pytest.fixture(scope="module")
def trained(demo, data):
    return [demo.train(demo.network(static), data, 20, "few steps") for static in (False, True)]


def test_the_data_are_images_from_0_to_1(demo):
    data = demo.digits()
    assert (data.x.shape, data.x_test.shape) == ((1347, 64), (450, 64))
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int64)
    assert (data.x.min(), data.x.max()) == (0, 1)


def test_the_network_learns(demo, data, trained):
    for one in trained:
        assert one.losses[-3:].mean() < 0.5 * one.losses[0]
        assert demo.accuracy(one.net, data.x, data.y) > 0.5


def test_eager_and_static_agree(demo, data, trained):
    found = demo.differences(*trained, data)
    assert len(found) == 7
    assert max(found.values()) < demo.AGREE


def test_one_program_serves_every_batch(demo, data, trained):
    static = trained[1].net
    demo.accuracy(static, data.x[:7], data.y[:7])
    explained = str(static.forward.explain())
    assert len(static.forward.program_cache) == 1
    assert "no fallback" in explained


def test_the_program_holds_the_control_flow_of_the_source(trained):
    text = str(trained[1].net.forward.main_program)
    assert re.search(r"cond\(.*while_loop\(", text, re.DOTALL)


def test_a_fresh_process_gets_the_same_accuracy_from_the_file(demo, data, trained, tmp_path):
    net = trained[1].net
    saved, picture = demo.save_and_draw(net, tmp_path)
    assert saved.exists()
    assert picture.read_text().lstrip().lower().startswith("<!doctype html>")
    assert demo.reloaded_accuracy(saved, data.x_test, data.y_test) == demo.accuracy(net, data.x_test, data.y_test)


@pytest.mark.slow
def test_the_fresh_process_refuses_to_see_the_source(data, tmp_path):
    command = [sys.executable, str(EXAMPLES / "use_saved.py"), "model", "data.npz"]
    library = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=library, capture_output=True, text=True)
    assert done.returncode == 1
    assert "the model's source can be imported; run this with python -P" in done.stderr


def test_the_bar_without_rich(demo, capsys, monkeypatch):
    showing = sys.modules["showing"]
    monkeypatch.setattr(showing, "track", None)
    assert list(showing.progress([1, 2, 3], "steps")) == [1, 2, 3]
    last = capsys.readouterr().err.rpartition("\r")[2]
    assert last == f"steps [{'#' * showing.BAR}]\n"


def test_the_examples_of_showing(demo):
    result = doctest.testmod(sys.modules["showing"])
    assert (result.failed, result.attempted > 2) == (0, True)
