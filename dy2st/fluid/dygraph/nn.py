"""1.x's eager layers: sizes and `act` in the constructor, `param_attr` for the weight."""

from __future__ import annotations

import math
from typing import Any

from dy2st.fluid.layers.dropping import dropout
from dy2st.fluid.layers.windows import pool2d
from dy2st.functions.core.operands import tensor
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.activation import prelu
from dy2st.nn.functional.affine import linear
from dy2st.nn.functional.lookup import embedding
from dy2st.nn.initializer.constant import Constant
from dy2st.nn.layer import Layer
from dy2st.nn.layers import conv, norm
from dy2st.nn.layers import linear as linear_layers
from dy2st.nn.layers.norm import BatchNorm, activated
from dy2st.runtime.eager.tensor import Tensor, needs_value


class FC(Layer):
    """activation(x @ weight + bias), x with its axes from `num_flatten_dims` on as one.

    The parameters are made at the first call, which tells the number of inputs.

    >>> import dy2st as paddle, dy2st.fluid as fluid
    >>> fc = fluid.dygraph.FC("scores", size=2)
    >>> fc(paddle.ones([3, 4])).shape, [p.shape for p in fc.parameters()]
    ([3, 2], [[4, 2], [2]])
    """

    def __init__(
        self, name_scope: str, size: int, num_flatten_dims: int = 1, param_attr: Any = None, bias_attr: Any = None,
        act: str | None = None, is_test: bool = False, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(name_scope, dtype)
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"FC: size must be a positive int, not {size!r}")
        self._size, self._num_flatten_dims, self._act = size, num_flatten_dims, act
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self.weight: Any = None
        self.bias: Any = None

    def forward(self, input: Any) -> Tensor:
        x = tensor(input, "FC")
        axes = self._num_flatten_dims
        if not 0 < axes < x.ndim:
            raise ValueError(f"FC: num_flatten_dims is {axes}, so the input needs more axes than {x.ndim}")
        weight = self._built(x.shape[axes:]) if self.weight is None else self.weight
        flat = x if x.ndim == axes + 1 else reshape(x, [*x.shape[:axes], weight.shape[0]])
        return activated(linear(flat, weight, self.bias), self._act)

    def _built(self, extents: list[Any]) -> Any:
        if not all(isinstance(extent, int) for extent in extents):
            raise needs_value(
                "FC makes its parameters at its first call, which needs the extents of its input; call it eagerly once"
            )
        weight = self.create_parameter([math.prod(extents), self._size], self._param_attr)
        self.weight = weight
        self.bias = self.create_parameter([self._size], self._bias_attr, is_bias=True)
        return weight


class Linear(linear_layers.Linear):
    """activation(x @ weight + bias)."""

    def __init__(
        self, input_dim: int, output_dim: int, param_attr: Any = None, bias_attr: Any = None, act: str | None = None,
        dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(input_dim, output_dim, param_attr, bias_attr)
        self._act = act
        self.astype(dtype)

    def forward(self, input: Tensor) -> Tensor:
        return activated(linear(input, self.weight, self.bias), self._act)


class _Conv(conv._Conv):
    """activation(convolution)."""

    def __init__(
        self, num_channels: int, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int | None = None, param_attr: Any = None, bias_attr: Any = None,
        use_cudnn: bool = True, act: str | None = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(
            num_channels, num_filters, filter_size, stride, padding, dilation, groups or 1, weight_attr=param_attr,
            bias_attr=bias_attr, dtype=dtype,
        )  # fmt: skip
        self._act = act

    def forward(self, x: Tensor) -> Tensor:
        return activated(super().forward(x), self._act)


class Conv2D(_Conv, conv.Conv2D):
    """activation(convolution of images); the weight is [num_filters, num_channels / groups, height, width]."""


class Conv3D(_Conv, conv.Conv3D):
    """activation(convolution of volumes)."""


class Conv2DTranspose(conv.Conv2DTranspose):
    """activation(transposed convolution of images)."""

    def __init__(
        self, num_channels: int, num_filters: int, filter_size: Any, output_size: Any = None, padding: Any = 0,
        stride: Any = 1, dilation: Any = 1, groups: int | None = None, param_attr: Any = None, bias_attr: Any = None,
        use_cudnn: bool = True, act: str | None = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(
            num_channels, num_filters, filter_size, stride, padding, 0, dilation, groups or 1, param_attr, bias_attr
        )  # fmt: skip
        self._act, self._output_size = act, output_size
        self.astype(dtype)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        wanted = self._output_size if output_size is None else output_size
        return activated(super().forward(x, wanted), self._act)


class Conv3DTranspose(conv.Conv3DTranspose):
    """activation(transposed convolution of volumes)."""

    def __init__(
        self, num_channels: int, num_filters: int, filter_size: Any, padding: Any = 0, stride: Any = 1,
        dilation: Any = 1, groups: int | None = None, param_attr: Any = None, bias_attr: Any = None,
        use_cudnn: bool = True, act: str | None = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(
            num_channels, num_filters, filter_size, stride, padding, 0, dilation, groups or 1, param_attr, bias_attr
        )  # fmt: skip
        self._act = act
        self.astype(dtype)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return activated(super().forward(x, output_size), self._act)


class Pool2D(Layer):
    """The maximum or mean of each window of images, or of whole images with `global_pooling`."""

    def __init__(
        self, pool_size: Any = -1, pool_type: str = "max", pool_stride: Any = 1, pool_padding: Any = 0,
        global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False, exclusive: bool = True,
        data_format: str = "NCHW",
    ):  # fmt: skip
        super().__init__(dtype=None)
        if pool_type not in ("max", "avg"):
            raise ValueError(f"Pool2D: pool_type must be 'max' or 'avg', not {pool_type!r}")
        if pool_size == -1 and not global_pooling:
            raise ValueError("Pool2D: pool_size must be given where global_pooling is False")
        self._how: dict[str, Any] = {
            "pool_size": pool_size, "pool_type": pool_type, "pool_stride": pool_stride, "pool_padding": pool_padding,
            "global_pooling": global_pooling, "ceil_mode": ceil_mode, "exclusive": exclusive,
            "data_format": data_format,
        }  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return pool2d(input, **self._how)


class Embedding(Layer):
    """Rows of a learnt table of shape `size`."""

    def __init__(
        self, size: Any, is_sparse: bool = False, is_distributed: bool = False, padding_idx: int | None = None,
        param_attr: Any = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        if padding_idx is not None and not -size[0] <= padding_idx < size[0]:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is outside of {size[0]} rows")
        self._padding_idx = None if padding_idx is None else padding_idx % size[0]
        self.weight = self.create_parameter(list(size), param_attr)

    def forward(self, input: Tensor) -> Tensor:
        return embedding(input, self.weight, self._padding_idx)


class LayerNorm(norm.LayerNorm):
    """activation(layer norm over the last axes), with or without scale and shift."""

    def __init__(
        self, normalized_shape: Any, scale: bool = True, shift: bool = True, epsilon: float = 1e-5,
        param_attr: Any = None, bias_attr: Any = None, act: str | None = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(
            normalized_shape, epsilon, param_attr if scale else False, bias_attr if shift else False, dtype=dtype
        )  # fmt: skip
        self._act = act

    def forward(self, input: Tensor) -> Tensor:
        return activated(super().forward(input), self._act)


class GroupNorm(norm.GroupNorm):
    """activation(group norm); `channels` first, then `groups`."""

    def __init__(
        self, channels: int, groups: int, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None,
        act: str | None = None, data_layout: str = "NCHW", dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(groups, channels, epsilon, param_attr, bias_attr, data_layout, dtype=dtype)
        self._act = act

    def forward(self, input: Tensor) -> Tensor:
        return activated(super().forward(input), self._act)


class InstanceNorm(norm.InstanceNorm2D):
    """Instance norm of images."""

    def __init__(
        self, num_channels: int, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None,
        dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(num_channels, epsilon, weight_attr=param_attr, bias_attr=bias_attr)
        self.astype(dtype)


class Dropout(Layer):
    """Zero elements at random in training; see `fluid.layers.dropout`."""

    def __init__(
        self, p: float = 0.5, seed: int | None = None, dropout_implementation: str = "downgrade_in_infer",
        is_test: bool = False,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._p, self._seed, self._implementation, self._is_test = p, seed, dropout_implementation, is_test

    def forward(self, input: Tensor) -> Tensor:
        is_test = self._is_test or not self.training
        return dropout(input, self._p, is_test, self._seed, dropout_implementation=self._implementation)


class PRelu(Layer):
    """max(0, x) + weight * min(0, x); one weight for "all", one a "channel", or one an "element"."""

    def __init__(
        self, mode: str, channel: int | None = None, input_shape: Any = None, param_attr: Any = None,
        dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        shapes = {"all": [1], "channel": channel and [channel], "element": input_shape and [1, *input_shape[1:]]}
        if mode not in shapes:
            raise ValueError(f"PRelu: mode must be 'all', 'channel' or 'element', not {mode!r}")
        if not shapes[mode]:
            raise ValueError(f"PRelu: mode {mode!r} needs {'channel' if mode == 'channel' else 'input_shape'}")
        self._mode = mode
        self.weight = self.create_parameter(shapes[mode], param_attr, default_initializer=Constant(1.0))

    def forward(self, input: Tensor) -> Tensor:
        if self._mode != "element":
            return prelu(input, self.weight)
        return input.clip(min=0.0) + self.weight * input.clip(max=0.0)


class BilinearTensorProduct(linear_layers.Bilinear):
    """activation(out[b, k] = x[b] @ weight[k] @ y[b] + bias[k])."""

    def __init__(
        self, input1_dim: int, input2_dim: int, output_dim: int, name: str | None = None, act: str | None = None,
        param_attr: Any = None, bias_attr: Any = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__(input1_dim, input2_dim, output_dim, param_attr, bias_attr)
        self._act = act
        self.astype(dtype)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return activated(super().forward(x1, x2), self._act)


__all__ = [
    "FC",
    "BatchNorm",
    "BilinearTensorProduct",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "LayerNorm",
    "Linear",
    "PRelu",
    "Pool2D",
]
