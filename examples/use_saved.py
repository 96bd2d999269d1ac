"""Use a saved model from a process that has no source of it: print its accuracy on a file of images and labels.

python -P use_saved.py MODEL DATA.npz

`-P` keeps this folder, where model.py is, off the module search path, so `import model` fails here.
"""

from __future__ import annotations

import importlib.util
import sys

import numpy as np

import dy2st as paddle


def main(model: str, data: str) -> str:
    """Return a line with the accuracy, or end the process when the model's source is at hand."""
    if importlib.util.find_spec("model") is not None:
        raise SystemExit("the model's source can be imported; run this with python -P")
    net = paddle.jit.load(model)
    net.eval()
    with np.load(data) as arrays:
        x, y = arrays["x"], arrays["y"]
    logits, _ = net(paddle.to_tensor(x))
    return repr(float((logits.numpy().argmax(axis=1) == y).mean()))


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
