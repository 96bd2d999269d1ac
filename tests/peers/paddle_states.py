"""Write tests/data/paddle: states that PaddlePaddle itself saved, and what its layers give with them.

It needs an environment of its own, as paddle_values.py does:

    PYTHONPATH=. /tmp/peer/bin/python tests/peers/paddle_states.py tests/data/paddle

`LAYERS` is what tests/peers/test_live_states.py compares with a Paddle that is there, on other numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SEED = 2026


def images(nn: Any) -> Any:
    """Return LeNet's features and a small head."""
    features = [nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5), nn.ReLU()]
    return nn.Sequential(*features, nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(400, 10))


LAYERS: tuple[tuple[str, Callable[[Any], Any], list[tuple[int, ...]]], ...] = (
    ("images", images, [(2, 1, 28, 28)]),
    ("lstm", lambda nn: nn.LSTM(3, 4, 2, direction="bidirect"), [(2, 5, 3)]),
    ("gru", lambda nn: nn.GRU(3, 4), [(2, 5, 3)]),
    ("encoder", lambda nn: nn.TransformerEncoderLayer(8, 2, 16), [(2, 5, 8)]),
    ("transformer", lambda nn: nn.Transformer(8, 2, 1, 1, 16), [(2, 5, 8), (2, 3, 8)]),
    ("norms", lambda nn: nn.Sequential(nn.BatchNorm2D(4), nn.GroupNorm(2, 4), nn.PReLU(4)), [(3, 4, 5, 5)]),
)
"""Names, makers (of the module `nn`) and shapes of the inputs of the layers whose states are compared."""


def inputs(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Return the same random inputs each time."""
    rng = np.random.default_rng(SEED)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def flat(out: Any) -> list[np.ndarray]:
    """Return the arrays of what a layer gives, tuples opened."""
    return [a for part in out for a in flat(part)] if isinstance(out, (list, tuple)) else [out.numpy()]


def trained(paddle: Any) -> tuple[Any, Any]:
    """Return a layer and its optimizer after three steps, the same ones each time."""
    layer = paddle.nn.Linear(3, 2)
    rng = np.random.default_rng(SEED)
    for p in layer.parameters():
        p.set_value(rng.normal(size=p.shape).astype("float32"))
    rate = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
    optimizer = paddle.optimizer.AdamW(rate, parameters=layer.parameters())
    steps(paddle, layer, optimizer, 3)
    return layer, optimizer


def steps(paddle: Any, layer: Any, optimizer: Any, count: int) -> None:
    """Train a linear layer of 3 inputs and 2 outputs a few steps further."""
    for _ in range(count):
        (layer(paddle.ones([4, 3])) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
        optimizer._learning_rate.step()


def main() -> None:
    import paddle  # the peer, not dy2st

    folder = Path(sys.argv[1])
    paddle.seed(SEED)
    kept: dict[str, np.ndarray] = {}
    for name, make, shapes in LAYERS:
        layer = make(paddle.nn)
        layer.eval()
        paddle.save(layer.state_dict(), str(folder / f"{name}.pdparams"))
        out = layer(*map(paddle.to_tensor, inputs(shapes)))
        kept.update({f"{name}.{i}": a for i, a in enumerate(flat(out))})
    paddle.utils.unique_name.switch()
    layer, optimizer = trained(paddle)
    paddle.save(layer.state_dict(), str(folder / "step3.pdparams"))
    paddle.save(optimizer.state_dict(), str(folder / "step3.pdopt"))
    steps(paddle, layer, optimizer, 2)
    kept.update({f"step5.{i}": p.numpy() for i, p in enumerate(layer.parameters())})
    weight = layer.weight
    for protocol in (2, 3, 4):
        state = {"weight": weight, "b": [paddle.ones([2], "int64"), 3], "c": (1, "x"), "array": np.arange(3)}
        paddle.save(state, str(folder / f"nested{protocol}.pdparams"), protocol=protocol)
    kept["weight"] = weight.numpy()
    halves = {"bfloat16": paddle.to_tensor([1.5, -2.0], "bfloat16"), "float16": paddle.to_tensor([0.5], "float16")}
    paddle.save({**halves, "bool": paddle.to_tensor([True, False])}, str(folder / "halves.pdparams"))
    paddle.save(weight, str(folder / "one.pdparams"))
    np.savez_compressed(folder / "expected.npz", **kept)


if __name__ == "__main__":
    main()
