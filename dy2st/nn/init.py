"""`paddle.nn.init`: values written into a parameter by an initializer; the parameter is returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.functions.core.assigning import set_value
from dy2st.functions.shape.creation import eye
from dy2st.missing import missing_in
from dy2st.nn import initializer as I
from dy2st.nn.initializer import calculate_gain as calculate_gain
from dy2st.runtime.eager.tensor import Tensor


def _form(make: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    def fill(tensor: Tensor, *args: Any, **keywords: Any) -> Tensor:
        return make(*args, **keywords)(tensor)

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = "Write what the initializer of this name gives into a tensor; return it."
    return fill


constant_ = _form(lambda val: I.Constant(val), "constant_")
zeros_ = _form(lambda: I.Constant(0.0), "zeros_")
ones_ = _form(lambda: I.Constant(1.0), "ones_")
normal_ = _form(lambda mean=0.0, std=1.0: I.Normal(mean, std), "normal_")
uniform_ = _form(lambda a=0.0, b=1.0: I.Uniform(a, b), "uniform_")
trunc_normal_ = _form(lambda mean=0.0, std=1.0, a=-2.0, b=2.0: I.TruncatedNormal(mean, std, a, b), "trunc_normal_")
xavier_normal_ = _form(
    lambda gain=1.0, fan_in=None, fan_out=None: I.XavierNormal(fan_in, fan_out, gain=gain), "xavier_normal_"
)
xavier_uniform_ = _form(
    lambda gain=1.0, fan_in=None, fan_out=None: I.XavierUniform(fan_in, fan_out, gain=gain), "xavier_uniform_"
)
kaiming_normal_ = _form(
    lambda a=0, mode="fan_in", nonlinearity="leaky_relu": I.KaimingNormal(
        negative_slope=a, nonlinearity=nonlinearity, mode=mode
    ),
    "kaiming_normal_",
)
kaiming_uniform_ = _form(
    lambda a=0, mode="fan_in", nonlinearity="leaky_relu": I.KaimingUniform(
        negative_slope=a, nonlinearity=nonlinearity, mode=mode
    ),
    "kaiming_uniform_",
)
orthogonal_ = _form(lambda gain=1: I.Orthogonal(gain), "orthogonal_")
dirac_ = _form(lambda groups=1: I.Dirac(groups), "dirac_")


def eye_(tensor: Tensor) -> Tensor:
    """Write ones into the diagonal of a matrix and zeros elsewhere; return it."""
    if tensor.ndim != 2:
        raise ValueError(f"eye_ needs a matrix, not a tensor of shape {tensor.shape}")
    return set_value(tensor, eye(*tensor.shape, dtype=tensor.dtype))


__getattr__ = missing_in(__name__)
