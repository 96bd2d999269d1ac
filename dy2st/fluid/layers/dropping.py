"""`fluid.layers.dropout`, whose default keeps the mean by scaling when the model is used, not when it is trained."""

from __future__ import annotations

from typing import Any

from dy2st.functions.core.operands import floating
from dy2st.functions.math.random import uniform
from dy2st.ir.context import current
from dy2st.nn.functional import dropping
from dy2st.runtime.eager.tensor import Tensor

_MODES = {"downgrade_in_infer": "downscale_in_infer", "upscale_in_train": "upscale_in_train"}


def dropout(
    x: Any, dropout_prob: float, is_test: bool | None = None, seed: int | None = None, name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Tensor:  # fmt: skip
    """Return x with each element zeroed with probability `dropout_prob` in training.

    Where `is_test` is None, the innermost running Layer says by its `train()` or `eval()` which it is; outside of any
    Layer it is training. "downgrade_in_infer" multiplies by 1 - dropout_prob outside of training;
    "upscale_in_train" divides by it in training. A `seed` other than 0 drops the same elements each time.

    >>> import dy2st as paddle, dy2st.fluid as fluid
    >>> fluid.layers.dropout(paddle.to_tensor([2.0, 4.0]), 0.5, is_test=True).tolist()
    [1.0, 2.0]
    """
    if dropout_implementation not in _MODES:
        names = " or ".join(map(repr, _MODES))
        raise ValueError(f"dropout: dropout_implementation must be {names}, not {dropout_implementation!r}")
    mode, training = _MODES[dropout_implementation], _trains() if is_test is None else not is_test
    if not training or not seed:
        return dropping.dropout(x, dropout_prob, training=training, mode=mode)
    x = floating(x, "dropout")
    if not 0.0 <= dropout_prob <= 1.0:
        raise ValueError(f"dropout: dropout_prob must be between 0 and 1, not {dropout_prob}")
    kept = (uniform(x.shape, x.dtype, min=0.0, max=1.0, seed=seed) >= dropout_prob).astype(x.dtype)
    if mode == "downscale_in_infer" or dropout_prob == 1.0:
        return x * kept
    return x * (kept * (1.0 / (1.0 - dropout_prob)))


def _trains() -> bool:
    layer = current().layer
    return True if layer is None else layer.training
