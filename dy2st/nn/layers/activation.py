"""Activation layers: one for each function of `functional/activation.py`, and those with parameters or a mode."""

from __future__ import annotations

from typing import Any

from dy2st.nn.functional import activation as F
from dy2st.nn.functional import softmax_family as S
from dy2st.nn.initializer.constant import Constant
from dy2st.nn.layer import Layer
from dy2st.nn.layers.from_function import REQUIRED, layer_of
from dy2st.runtime.eager.tensor import Tensor


def _layer(name: str, function: Any, **options: Any) -> type[Layer]:
    return layer_of(name, function, f"{function.__doc__.splitlines()[0]}", __name__, **options)


ReLU = _layer("ReLU", F.relu)
ReLU6 = _layer("ReLU6", F.relu6)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu, negative_slope=0.01)
ELU = _layer("ELU", F.elu, alpha=1.0)
CELU = _layer("CELU", F.celu, alpha=1.0)
SELU = _layer("SELU", F.selu, scale=1.0507009873554805, alpha=1.6732632423543772)
GELU = _layer("GELU", F.gelu, approximate=False)
Silu = _layer("Silu", F.silu, inplace=False)
SiLU = Silu
Swish = _layer("Swish", F.swish)
Mish = _layer("Mish", F.mish)
Softplus = _layer("Softplus", F.softplus, beta=1, threshold=20)
Sigmoid = _layer("Sigmoid", F.sigmoid)
LogSigmoid = _layer("LogSigmoid", F.log_sigmoid)
Tanh = _layer("Tanh", F.tanh)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid)
Hardswish = _layer("Hardswish", F.hardswish)
Hardtanh = _layer("Hardtanh", F.hardtanh, min=-1.0, max=1.0)
Hardshrink = _layer("Hardshrink", F.hardshrink, threshold=0.5)
Softshrink = _layer("Softshrink", F.softshrink, threshold=0.5)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
Softsign = _layer("Softsign", F.softsign)
ThresholdedReLU = _layer("ThresholdedReLU", F.thresholded_relu, threshold=1.0, value=0.0)
Maxout = _layer("Maxout", F.maxout, groups=REQUIRED, axis=1)
GLU = _layer("GLU", F.glu, axis=-1)
Softmax = _layer("Softmax", S.softmax, axis=-1)
LogSoftmax = _layer("LogSoftmax", S.log_softmax, axis=-1)


class Softmax2D(Layer):
    """Softmax over the channels of images."""

    def __init__(self, name: str | None = None):
        super().__init__(dtype=None)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2D needs a tensor of 3 or 4 axes, not {x.ndim}")
        return S.softmax(x, axis=-3)


class PReLU(Layer):
    """Return x where it is positive, else weight * x, with one learnt weight or one for each channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, weight_attr: Any = None, data_format: str = "NCHW",
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._num_parameters, self._data_format = num_parameters, data_format
        self._weight = self.create_parameter(
            [num_parameters], weight_attr, default_initializer=Constant(float(init))
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self._weight, self._data_format)

    def extra_repr(self) -> str:
        return f"num_parameters={self._num_parameters}, data_format={self._data_format}"


class RReLU(Layer):
    """Leaky ReLU whose slope is drawn from [lower, upper) in training and their mean otherwise."""

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, name: str | None = None):
        super().__init__(dtype=None)
        self._lower, self._upper = lower, upper

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self._lower, self._upper, self.training)

    def extra_repr(self) -> str:
        return f"lower={self._lower}, upper={self._upper}"
