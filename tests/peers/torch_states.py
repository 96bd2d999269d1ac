"""Writes `tests/data/torch/`: what torch saves, and what its modules give for it.

In an environment with torch, onnx and onnxscript alone: `PYTHONPATH=. python tests/peers/torch_states.py FOLDER`.

    NAME.pt             state dicts of small modules
    outputs.npz         what the modules give
    large.json          names and shapes of modules whose weights would be too large (`torch_models.numbers`)
    checkpoint.pt       a state dict with an optimizer's state, numbers and texts around it
    views.pt            tensors that look into storages: transposed, sliced, expanded, tied
    dtypes.pt           all dtypes
    stream.pth          a file as torch before 1.6 wrote it
    module.pt           a pickled module, which is not read
    classifier.onnx     a module that torch exported, with dynamic axes
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

from tests.peers.torch_models import LARGE, drawn, numbers, small

DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"


class Classifier(nn.Module):
    """Scores of sequences of any length."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.scores = nn.Linear(8, 3)

    def forward(self, words):
        return self.scores(self.encoder(self.embedding(words)).mean(1))


def randomized(module):
    """Give tensors that begin as zeros or ones other values."""
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point() and len(tensor.unique()) == 1:
                tensor += 0.3 * torch.rand(tensor.shape) if "var" in name else torch.randn(tensor.shape) * 0.3
    return module.eval()


def with_outputs(folder: Path) -> None:
    """Write the modules' states and outputs."""
    outputs, shapes = {}, {}
    for name, (module, arrays) in small(nn).items():
        torch.save(randomized(module).state_dict(), folder / f"{name}.pt")
        made = module(*map(torch.from_numpy, arrays))
        outputs[name] = (made[0] if isinstance(made, tuple) else made).numpy()
    for name, (make, shape) in LARGE.items():
        module = make(nn).eval()
        shapes[name] = {key: list(t.shape) for key, t in module.state_dict().items()}
        module.load_state_dict({k: torch.from_numpy(numbers(k, tuple(s))) for k, s in shapes[name].items()})
        outputs[name] = module(torch.from_numpy(drawn(*shape))).numpy()
    classifier = randomized(Classifier())
    words = torch.arange(12).reshape(3, 4) % 11
    outputs["classifier"] = classifier(words).numpy()
    axes = {0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("length", min=2)}
    program = torch.onnx.export(classifier, (words,), dynamo=True, dynamic_shapes=(axes,), verbose=False)
    onnx.save(without_metadata(program.model_proto), folder / "classifier.onnx")
    np.savez_compressed(folder / "outputs.npz", **outputs)
    (folder / "large.json").write_text(json.dumps(shapes, separators=(",", ":")) + "\n")


def without_metadata(model):
    """Return an ONNX model without stack traces of the process that wrote it."""
    for part in (model, model.graph, *model.functions, *model.graph.node, *model.graph.value_info, *model.graph.input,
                 *model.graph.output, *model.graph.initializer):  # fmt: skip
        del part.metadata_props[:]
    return model


def files(folder: Path) -> None:
    """Write files of other kinds."""
    module = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    around = {"epoch": 3, "best": 0.5, "name": "é", "device": torch.device("cpu"), "size": torch.Size([2, 3])}
    state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "seen": np.arange(3.0)}
    torch.save(around | state, folder / "checkpoint.pt")
    whole = torch.arange(24.0).reshape(4, 6)
    views = {
        "whole": whole, "t": whole.t(), "column": whole[:, 2], "corner": whole[2:, 3:], "again": whole,
        "expanded": torch.tensor([1.0, 2.0]).expand(3, 2), "empty": torch.zeros(0, 3), "scalar": torch.tensor(5),
        "parameter": nn.Parameter(torch.ones(2)), "tied": [module.weight, module.weight],
    }  # fmt: skip
    torch.save(views, folder / "views.pt")
    torch.save({n: torch.tensor([0, 1, 2]).to(getattr(torch, n)) for n in DTYPES.split()}, folder / "dtypes.pt")
    torch.save({**views, "b": torch.ones(2).bfloat16()}, folder / "stream.pth", _use_new_zipfile_serialization=False)
    torch.save(nn.Linear(1, 1), folder / "module.pt")


if __name__ == "__main__":
    torch.manual_seed(0)
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        with_outputs(target)
    files(target)
