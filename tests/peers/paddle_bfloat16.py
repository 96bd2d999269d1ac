"""What PaddlePaddle computes with bfloat16 on a CPU: writes tests/data/paddle/bfloat16.json, with its Python.

python tests/peers/paddle_bfloat16.py   # each result: dtype, shape, elements (of bfloat16 the bits)
"""

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "data" / "paddle" / "bfloat16.json"


def results(paddle):
    """Return the results of what PaddlePaddle has a kernel for."""
    functional = paddle.nn.functional
    k = np.arange(24, dtype="float32")
    x, y = (
        paddle.to_tensor(a.reshape(4, 6).astype("float32")).astype("bfloat16")
        for a in (np.sin(k * 1.7) * 3, np.cos(k * 0.9) + 1.3)
    )
    places = paddle.to_tensor([2, 0])
    wide = paddle.to_tensor(np.array([1.00390625, 1.01171875, 3.3895e38, 1e-40, 7.0]))
    return {
        "sub": x - y, "mul": x * y, "one more": x + 1, "one less x": 1 - x, "a tenth": x * 0.1, "a third": x / 3,
        "scale": paddle.scale(x, 2.3, 0.7), "maximum": paddle.maximum(x, y), "minimum": paddle.minimum(x, y),
        "floor_divide": x // y, "outer": paddle.outer(x[0], y[0]),
        "log": paddle.log(y), "log2": paddle.log2(y), "log10": paddle.log10(y), "log1p": paddle.log1p(y),
        "floor": paddle.floor(x), "ceil": paddle.ceil(x), "sum": x.sum(), "sum of rows": x.sum(axis=1),
        "less": x < y, "isnan": paddle.isnan(x), "sort": paddle.sort(x, 1), "argsort": paddle.argsort(x, 1),
        "concat": paddle.concat([x, y]), "stack": paddle.stack([x, y]), "transpose": x.t(), "slice": x[1:3, ::2],
        "gather": paddle.gather(x, places), "index_select": x.index_select(places, 1), "expand": x[:1].expand([3, 6]),
        "embedding": functional.embedding(places, y), "pad": functional.pad(x, [1, 1]),
        "to int32": x.astype("int32"), "of float64": wide.astype("bfloat16"),
        "of int64": paddle.to_tensor(np.array([257, 259, 16777217, -3])).astype("bfloat16"),
        "full": paddle.full([2], 1.1, "bfloat16"), "ones": paddle.ones([2], "bfloat16"),
    }  # fmt: skip


def described(result):
    """Return dtype, shape and elements of a tensor as JSON has them."""
    array, dtype = result.numpy(), str(result.dtype).removeprefix("paddle.")
    array = array.view(np.uint16) if dtype == "bfloat16" else array
    return [dtype, list(array.shape), array.reshape(-1).astype("int64").tolist()]


if __name__ == "__main__":
    import paddle

    found = {name: described(result) for name, result in results(paddle).items()}
    FILE.write_text(json.dumps(found, separators=(",", ":")) + "\n")
