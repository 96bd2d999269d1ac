"""How much a nonlinearity shrinks its input, as the factor that initial values make up for."""

from __future__ import annotations

import math

_FIXED = {"sigmoid": 1.0, "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv1d_transpose": 1.0,
          "conv2d_transpose": 1.0, "conv3d_transpose": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0),
          "selu": 0.75}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the recommended gain of a nonlinearity; `param` is the negative slope of leaky_relu.

    >>> round(calculate_gain("relu"), 4), calculate_gain("leaky_relu", 1.0)
    (1.4142, 1.0)
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else float(param)) ** 2))
    if nonlinearity not in _FIXED:
        known = ", ".join(sorted([*_FIXED, "leaky_relu"]))
        raise ValueError(f"no gain is known for the nonlinearity {nonlinearity!r}; known: {known}")
    return _FIXED[nonlinearity]
