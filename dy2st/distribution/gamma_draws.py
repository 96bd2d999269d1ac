"""Draws of gamma laws through which gradients flow to their shapes.

A draw z of the law with shape a is F^-1(u; a) for a uniform u that does not depend on a, so its derivative is
-(dF/da) / (dF/dz) (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018). With dF/da as the
integral of (log t - digamma(a)) over the density, from 0 to z or, with the other sign, from z on, and t = z e^-w or
z e^w, the integrand falls from w = 0 on whichever side of a the draw is, and a double-exponential rule takes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.autograd.py_layer import PyLayer
from dy2st.functions.core.operands import cast_to
from dy2st.functions.math import math, reduction
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random_laws import standard_gamma
from dy2st.functions.shape.from_data import to_tensor
from dy2st.functions.shape.manipulation import reshape, unsqueeze
from dy2st.runtime.eager.tensor import Tensor

_STEP = 0.08
_TIMES = np.arange(-3.2, 2.4, _STEP)
_NODES = np.exp(np.pi / 2 * np.sinh(_TIMES))
_WEIGHTS = _STEP * np.pi / 2 * np.cosh(_TIMES) * _NODES
_FARTHEST = 600.0
"""Past this w the integrand is 0 in any case, and e^w no longer fits."""


class _Draw(PyLayer):
    """One draw for each shape, of rate 1."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:  # type: ignore[override]
        drawn = standard_gamma(concentration)
        ctx.save_for_backward(concentration, drawn)
        return drawn

    @staticmethod
    def backward(ctx: Any, ct: Tensor) -> Tensor:  # type: ignore[override]
        concentration, drawn = ctx.saved_tensor()
        return ct * draw_slope(concentration, drawn)


def gamma_draws(concentration: Tensor) -> Tensor:
    """Return a draw of the gamma law of rate 1 for each shape, with its derivative by the shape."""
    return _Draw.apply(concentration)


def draw_slope(concentration: Tensor, drawn: Tensor) -> Tensor:
    """Return the derivative of draws of gamma laws of rate 1 by their shapes, in the dtype of the draws.

    >>> import dy2st as paddle
    >>> slope = draw_slope(paddle.to_tensor([1.0]), paddle.to_tensor([0.5]))
    >>> f"{slope.item():.5f}"
    '0.80698'
    """
    a, z = cast_to(concentration, dtypes.float64), cast_to(drawn, dtypes.float64)
    z = math.clip(z, 1e-300)
    level = math.log(z) - math.digamma(a)
    below, above = math.minimum(z, a), math.maximum(z, a)
    nodes = [reshape(to_tensor(values), [-1, *([1] * a.ndim)]) for values in (_NODES, _WEIGHTS)]
    down_width = 1.0 / (a - below + math.minimum(a, math.sqrt(a)))
    w = nodes[0] * unsqueeze(down_width, 0)
    down = math.exp(-a * w - below * math.expm1(-w)) * (level - w)
    up_width = 1.0 / (1.0 + math.sqrt(above) + above - a)
    v = math.clip(nodes[0] * unsqueeze(up_width, 0), max=_FARTHEST)
    up = math.exp(a * v - above * math.expm1(v)) * (level + v)
    low = -down_width * reduction.sum(nodes[1] * down, 0)
    high = up_width * reduction.sum(nodes[1] * up, 0)
    return cast_to(z * where(z <= a, low, high), drawn.dtype)
