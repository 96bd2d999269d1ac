"""`fluid.layers.fc`, with 1.x's names for its arguments."""

from __future__ import annotations

from typing import Any

from dy2st.runtime.eager.tensor import Tensor
from dy2st.static import nn


def fc(
    input: Any, size: int, num_flatten_dims: int = 1, param_attr: Any = None, bias_attr: Any = None,
    act: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return activation(x @ weight + bias) in a hand-built Program; with several inputs, their sum before the bias."""
    return nn.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)
