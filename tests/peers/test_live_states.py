"""States against a PaddlePaddle and a PyTorch that are there: the same outputs to 1e-5, in both directions.

They are no dependencies of dy2st. In an environment of their own (see paddle_values.py; add pytest, gast, astor,
llvmlite, torch): `PYTHONPATH=. /tmp/peer/bin/python -m pytest -p no:cacheprovider tests/peers/test_live_states.py`.
"""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from tests.peers.paddle_states import LAYERS, flat, inputs

pytestmark = pytest.mark.filterwarnings("ignore")
MODELS = (*LAYERS, ("lenet", lambda nn: None, [(2, 1, 28, 28)]))


def needs(name: str) -> pytest.MarkDecorator:
    there = importlib.util.find_spec(name) is not None
    return pytest.mark.skipif(not there, reason=f"{name} is not installed: it is compared with in the soak")


def made(module, name, make):
    layer = module.vision.models.LeNet() if name == "lenet" else make(module.nn)
    layer.eval()
    return layer


@needs("paddle")
@pytest.mark.parametrize(("name", "make", "shapes"), MODELS, ids=[name for name, *_ in MODELS])
def test_states_from_and_to_paddle(name, make, shapes, tmp_path):
    peer = importlib.import_module("paddle")
    theirs, ours = made(peer, name, make), made(paddle, name, make)
    arrays = inputs(shapes)
    mine = flat(ours(*map(paddle.to_tensor, arrays)))
    paddle.save(ours.state_dict(), tmp_path / "ours.safetensors")

    peer.save(theirs.state_dict(), str(tmp_path / "theirs.pdparams"))
    assert ours.set_state_dict(paddle.load(tmp_path / "theirs.pdparams")) == ([], [])
    want = flat(theirs(*map(peer.to_tensor, arrays)))
    for got, a in zip(flat(ours(*map(paddle.to_tensor, arrays))), want, strict=True):
        np.testing.assert_allclose(got, a, rtol=1e-5, atol=1e-5)

    load = importlib.import_module("safetensors.numpy").load_file
    theirs.set_state_dict(load(tmp_path / "ours.safetensors"))
    for got, a in zip(flat(theirs(*map(peer.to_tensor, arrays))), mine, strict=True):
        np.testing.assert_allclose(got, a, rtol=1e-5, atol=1e-5)


def from_torch(state):
    """Return the state of PyTorch under the names and in the layouts of Paddle."""
    found = {}
    for name, array in state.items():
        name = name.replace("running_mean", "_mean").replace("running_var", "_variance")
        if "in_proj_" in name:
            for part, letter in zip(np.split(array, 3), "qkv", strict=True):
                found[name.replace("in_proj_", f"{letter}_proj.")] = part.T if part.ndim == 2 else part
        elif "num_batches" not in name:
            linear = array.ndim == 2 and "weight_ih" not in name and "weight_hh" not in name
            found[name] = array.T if linear else array
    return found


def torch_pairs(nn):
    """Return pairs of a layer of PyTorch and the same of Paddle's names."""
    lenet = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)
    )
    head = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))
    whole = nn.Sequential()
    whole.add_module("features", lenet)
    whole.add_module("flat", nn.Flatten())
    whole.add_module("fc", head)
    return {
        "lenet": (whole, paddle.vision.models.LeNet(), (2, 1, 28, 28)),
        "lstm": (
            nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
            paddle.nn.LSTM(3, 4, 2, "bidirect"),
            (2, 5, 3),
        ),
        "encoder": (
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
            paddle.nn.TransformerEncoderLayer(8, 2, 16),
            (2, 5, 8),
        ),
        "batch norm": (nn.BatchNorm2d(3), paddle.nn.BatchNorm2D(3), (4, 3, 5, 5)),
    }


@needs("torch")
@pytest.mark.parametrize("name", ["lenet", "lstm", "encoder", "batch norm"])
def test_states_from_torch(name, tmp_path):
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    theirs, ours, shape = torch_pairs(torch.nn)[name]
    theirs.eval(), ours.eval()
    importlib.import_module("safetensors.torch").save_file(theirs.state_dict(), tmp_path / "t.safetensors")
    state = from_torch(paddle.load(tmp_path / "t.safetensors", return_numpy=True))
    missing, unexpected = ours.set_state_dict({k: a for k, a in state.items() if k in ours.state_dict()})
    assert unexpected == []
    assert all(".cell" in key for key in missing)  # a second name of what was set
    (array,) = inputs([shape])
    with torch.no_grad():
        out = theirs(torch.from_numpy(array))
    want = out[0].numpy() if isinstance(out, tuple) else out.numpy()
    np.testing.assert_allclose(flat(ours(paddle.to_tensor(array)))[0], want, rtol=1e-5, atol=1e-5)


@needs("torch")
def test_bfloat16_from_torch(tmp_path):
    torch = importlib.import_module("torch")
    tensors = {"w": torch.tensor([1.5, -2.0], dtype=torch.bfloat16), "c": torch.tensor([1 + 2j])}
    importlib.import_module("safetensors.torch").save_file(tensors, tmp_path / "t.safetensors")
    found = paddle.load(tmp_path / "t.safetensors")
    assert (found["w"].dtype.name, found["w"].tolist()) == ("bfloat16", [1.5, -2.0])
    assert found["c"].tolist() == [1 + 2j]


@needs("paddle")
def test_the_golden_files_can_be_written(tmp_path):
    script = Path(__file__).with_name("paddle_states.py")
    command = [sys.executable, str(script), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=script.parents[2])
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {path.name for path in (script.parents[1] / "data" / "paddle").iterdir()}
