"""`paddle.sparse.nn`: activations, norms and convolutions of sparse tensors [batch, ..., channels]."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from dy2st.functions.math.math import exp
from dy2st.functions.shape.creation import ones
from dy2st.functions.shape.gather_scatter import gather, gather_nd
from dy2st.functions.shape.manipulation import transpose
from dy2st.geometric import _combined
from dy2st.missing import missing_in
from dy2st.nn import functional as F
from dy2st.nn.initializer import Normal
from dy2st.nn.layer import Layer
from dy2st.nn.layers.from_function import layer_of
from dy2st.nn.layers.norm import BatchNorm1D
from dy2st.sparse.functions import of_values, sparse
from dy2st.sparse.tensors import SparseCooTensor, to_sparse_coo

relu = of_values(F.relu, "relu")
relu6 = of_values(F.relu6, "relu6")
leaky_relu = of_values(F.leaky_relu, "leaky_relu")


def softmax(x: Any, axis: int = -1, name: str | None = None) -> Any:
    """Return the softmax of the values of each row: places without a value have none in the result."""
    if axis not in (-1, x.ndim - 1):
        raise ValueError(f"sparse softmax goes along the last axis, not {axis}")
    coo = sparse(x, "softmax").to_sparse_coo()
    rows, count = coo._indices[0], x.shape[0]
    for i in range(1, x.ndim - 1):
        rows, count = rows * x.shape[i] + coo._indices[i], count * x.shape[i]
    powers = exp(coo._values - gather(_combined(coo._values.detach(), rows, count, "max"), rows))
    return x.with_values(powers / gather(_combined(powers, rows, count, "sum"), rows))


def _conv(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, rank: int, same: bool
) -> SparseCooTensor:
    """Return the convolution of [batch, ..., channels], at the places of x with `same`, else wherever it reaches."""
    if not isinstance(x, SparseCooTensor):
        raise TypeError(f"a sparse convolution needs a COO tensor, not {type(x).__name__}")
    convolve = F.conv3d if rank == 3 else F.conv2d
    last = "NDHWC" if rank == 3 else "NHWC"
    kernel = transpose(weight, [rank + 1, rank, *range(rank)])
    if same:
        padding = [(int(k) - 1) // 2 * d for k, d in zip(weight.shape[:rank], _each(dilation, rank), strict=True)]
        stride = 1
    how = (stride, padding, dilation)
    out = convolve(x.to_dense(), kernel, bias, *how, groups, last)
    if same:
        return SparseCooTensor(x._indices, gather_nd(out, transpose(x._indices, [1, 0])), out.shape, x._coalesced)
    there = SparseCooTensor(x._indices, ones([x._values.shape[0], 1], out.dtype), [*x.shape[:-1], 1]).to_dense()
    reached = convolve(there, ones([1, 1, *weight.shape[:rank]], out.dtype), None, *how, 1, last)
    places = to_sparse_coo(reached[..., 0])._indices
    return SparseCooTensor(places, gather_nd(out, transpose(places, [1, 0])), out.shape, True)


def _each(value: Any, rank: int) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def _convolution(rank: int, same: bool, name: str) -> Any:
    def function(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        data_format: Any = None, key: str | None = None, name: str | None = None,
    ) -> SparseCooTensor:  # fmt: skip
        return _conv(x, weight, bias, stride, padding, dilation, groups, rank, same)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Return the convolution of a sparse tensor [batch, ..., channels] with [*kernel, in, out]."
    return function


conv2d, conv3d = _convolution(2, False, "conv2d"), _convolution(3, False, "conv3d")
subm_conv2d, subm_conv3d = _convolution(2, True, "subm_conv2d"), _convolution(3, True, "subm_conv3d")
subm_conv2d_igemm, subm_conv3d_igemm = subm_conv2d, subm_conv3d


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    data_format: str = "NDHWC", name: str | None = None,
) -> SparseCooTensor:  # fmt: skip
    """Return the largest value of each window that has one; places without a value do not count."""
    there = SparseCooTensor(x._indices, ones(x._values.shape, x.dtype), x.shape).to_dense()
    dense = x.to_dense() + (there - 1.0) * 1e30
    how = (kernel_size, stride, padding)
    out = F.max_pool3d(dense, *how, ceil_mode=ceil_mode, data_format="NDHWC")
    reached = F.max_pool3d(there[..., :1], *how, ceil_mode=ceil_mode, data_format="NDHWC")
    places = to_sparse_coo(reached[..., 0])._indices
    return SparseCooTensor(places, gather_nd(out, transpose(places, [1, 0])), out.shape, True)


class _Conv(Layer):
    """A convolution with weights [*kernel, in, out]."""

    rank: int
    same = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros", key: str | None = None,
        weight_attr: Any = None, bias_attr: Any = None, data_format: Any = None, backend: Any = None,
    ):  # fmt: skip
        super().__init__()
        if padding_mode != "zeros" or groups != 1:
            raise ValueError(f"{type(self).__name__}: padding_mode is 'zeros' and groups 1")
        kernel = _each(kernel_size, self.rank)
        self._how = (stride, padding, dilation)
        total = in_channels
        for extent in kernel:
            total *= extent
        default = Normal(0.0, (2.0 / total) ** 0.5)
        self.weight = self.create_parameter([*kernel, in_channels, out_channels], weight_attr,
                                            default_initializer=default)  # fmt: skip
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Any) -> SparseCooTensor:
        return _conv(x, self.weight, self.bias, *self._how, 1, self.rank, self.same)


class Conv2D(_Conv):
    """A convolution of [batch, height, width, channels], with a value wherever the kernel reaches one."""

    rank = 2


class Conv3D(_Conv):
    """A convolution of [batch, depth, height, width, channels], with a value wherever the kernel reaches one."""

    rank = 3


class SubmConv2D(Conv2D):
    """A convolution whose values stand where those of the operand do (a submanifold convolution)."""

    same = True


class SubmConv3D(Conv3D):
    """A convolution whose values stand where those of the operand do (a submanifold convolution)."""

    same = True


class BatchNorm(BatchNorm1D):
    """Batch norm of the values [count, channels]."""

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NDHWC", use_global_stats: bool | None = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, "NC", use_global_stats)

    def forward(self, input: Any) -> Any:  # type: ignore[override]
        return input.with_values(super().forward(input.values()))


SyncBatchNorm = type("SyncBatchNorm", (BatchNorm,), {
    "__doc__": "The same: there is one process.", "__module__": __name__,
    "convert_sync_batchnorm": classmethod(lambda cls, layer: layer),
})  # fmt: skip
ReLU, ReLU6 = (layer_of(n, f, "Apply it to the values.", __name__) for n, f in (("ReLU", relu), ("ReLU6", relu6)))
LeakyReLU = layer_of("LeakyReLU", leaky_relu, "Apply it to the values.", __name__, negative_slope=0.01)
Softmax = layer_of("Softmax", softmax, "The softmax of the values of each row.", __name__, axis=-1)
MaxPool3D = layer_of(
    "MaxPool3D", max_pool3d, "The largest value of each window that has one.", __name__, kernel_size=2, stride=None,
    padding=0, ceil_mode=False,
)  # fmt: skip

functional = ModuleType(f"{__name__}.functional", "The functions of `paddle.sparse.nn`.")
for _name in ("relu", "relu6", "leaky_relu", "softmax", "conv2d", "conv3d", "subm_conv2d", "subm_conv3d", "max_pool3d",
              "subm_conv2d_igemm", "subm_conv3d_igemm"):  # fmt: skip
    setattr(functional, _name, globals()[_name])
sys.modules[functional.__name__] = functional
__path__: list[str] = []
__getattr__ = missing_in(__name__)
