"""The initializers that `set_global_initializer` put before the defaults of layers."""

from __future__ import annotations

from dy2st.ir.context import current
from dy2st.nn.initializer.base import Initializer


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """Use these for parameters created from now on whose ParamAttr names none; None restores the layers' defaults."""
    for what, initializer in (("weight_init", weight_init), ("bias_init", bias_init)):
        if initializer is not None and not isinstance(initializer, Initializer):
            raise TypeError(f"set_global_initializer: {what} must be an Initializer, not {type(initializer).__name__}")
    current().process.initializers = (weight_init, bias_init)


def global_initializer(is_bias: bool) -> Initializer | None:
    """Return the global initializer of weights or biases, None where there is none."""
    pair = current().process.initializers
    return None if pair is None else pair[1 if is_bias else 0]
