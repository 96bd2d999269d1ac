"""Normalisation layers; batch norm keeps running statistics as the buffers `_mean` and `_variance`."""

from __future__ import annotations

import math
from typing import Any

from dy2st.functions.shape.creation import ones, zeros
from dy2st.ir.context import replaced
from dy2st.nn.functional import activation
from dy2st.nn.functional import norm as F
from dy2st.nn.functional.softmax_family import softmax
from dy2st.nn.initializer.constant import Constant
from dy2st.nn.layer import Layer
from dy2st.ops.collective.world import world
from dy2st.runtime.eager.tensor import Tensor


class _BatchNorm(Layer):
    """Running statistics, learnt scale and offset for each of `num_features` channels."""

    ranks: tuple[int, ...]

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NCHW", use_global_stats: bool | None = None,
        name: str | None = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats = data_format, use_global_stats
        self._weight_attr, self._bias_attr = weight_attr, bias_attr
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        if self.weight is not None and weight_attr is False:
            self.weight.stop_gradient = True
        self._register_statistics(num_features)

    def _register_statistics(self, num_features: int) -> None:
        with replaced(trace=None):
            mean, variance = zeros([num_features], self._dtype), ones([num_features], self._dtype)
        mean.name, variance.name = f"{self._full_name}.w_1", f"{self._full_name}.w_2"
        mean.fixed_shape = variance.fixed_shape = True
        self.register_buffer("_mean", mean)
        self.register_buffer("_variance", variance)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.ranks:
            expected = " or ".join(f"{rank}-D" for rank in self.ranks)
            raise ValueError(f"{type(self).__name__} needs a {expected} tensor, not one of {input.ndim} axes")
        return F.batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, self.training, self._momentum, self._epsilon,
            self._data_format, self._use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        return parts if self._data_format == "NCHW" else f"{parts}, data_format={self._data_format}"


_BatchNormBase = _BatchNorm  # as projects import it


class BatchNorm1D(_BatchNorm):
    """Batch norm of [batch, channels] or [batch, channels, length]."""

    ranks = (2, 3)

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NCL", use_global_stats: bool | None = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats)


class BatchNorm2D(_BatchNorm):
    """Batch norm of images."""

    ranks = (4,)


class BatchNorm3D(_BatchNorm):
    """Batch norm of volumes."""

    ranks = (5,)

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NCDHW", use_global_stats: bool | None = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats)


class BatchNorm(_BatchNorm):
    """Batch norm of tensors of 2 to 5 axes with an activation, as Paddle 1.x had it."""

    ranks = (2, 3, 4, 5)

    def __init__(
        self, num_channels: int, act: str | None = None, is_test: bool = False, momentum: float = 0.9,
        epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None, dtype: Any = "float32",
        data_layout: str = "NCHW", in_place: bool = False, moving_mean_name: str | None = None,
        moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False, trainable_statistics: bool = False,
    ):  # fmt: skip
        super().__init__(
            num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats, dtype=dtype
        )  # fmt: skip
        self._act, self._is_test, self._trainable_statistics = act, is_test, trainable_statistics
        for buffer, name in ((self._mean, moving_mean_name), (self._variance, moving_variance_name)):
            if name is not None:
                buffer.name = name

    def forward(self, input: Tensor) -> Tensor:
        training = (self.training and not self._is_test) or self._trainable_statistics
        out = F.batch_norm(
            input, self._mean, self._variance, self.weight, self.bias, training, self._momentum, self._epsilon,
            self._data_format, self._use_global_stats,
        )  # fmt: skip
        return activated(out, self._act)


class SyncBatchNorm(_BatchNorm):
    """Batch norm whose statistics cover all processes; with one process the same as batch norm."""

    ranks = (2, 3, 4, 5)

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or self._use_global_stats or world().size == 1:
            return super().forward(input)
        return F.batch_norm_of_all(
            input, self._mean, self._variance, self.weight, self.bias, self._momentum, self._epsilon, self._data_format
        )

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """Return a layer with a SyncBatchNorm, of the same parameters, in the place of each batch norm in it.

        >>> import dy2st as paddle
        >>> net = paddle.nn.Sequential(paddle.nn.BatchNorm2D(3))
        >>> type(paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]).__name__
        'SyncBatchNorm'
        """
        if isinstance(layer, _BatchNorm):
            made = cls.__new__(cls)
            made.__dict__.update(layer.__dict__)
            return made
        for name, part in list(layer._sub_layers.items()):
            layer._sub_layers[name] = cls.convert_sync_batchnorm(part)
        return layer


class LayerNorm(Layer):
    """Normalise over the last axes, for whose elements, in one row, `weight` and `bias` have a number each."""

    def __init__(
        self, normalized_shape: Any, epsilon: float = 1e-5, weight_attr: Any = None, bias_attr: Any = None,
        name: str | None = None, *, elementwise_affine: bool = True, bias: bool = True, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        self._normalized_shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._epsilon = epsilon
        scaled = weight_attr if elementwise_affine else False
        moved = bias_attr if elementwise_affine and bias else False
        count = [math.prod(self._normalized_shape)]
        self.weight = self.create_parameter(count, scaled, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(count, moved, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class RMSNorm(Layer):
    """x / sqrt(mean(x^2) + epsilon) * weight over the last axes."""

    def __init__(self, normalized_shape: Any, epsilon: float = 1e-5, weight_attr: Any = None, name: str | None = None):
        super().__init__(dtype=None)
        self._normalized_shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._epsilon = epsilon
        self.weight = self.create_parameter(self._normalized_shape, weight_attr, default_initializer=Constant(1.0))

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self._normalized_shape, self.weight, self._epsilon)


class GroupNorm(Layer):
    """Normalise each group of channels of each element."""

    def __init__(
        self, num_groups: int, num_channels: int, epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NCHW", name: str | None = None, *, affine: bool = True,
        dtype: Any = None,
    ):  # fmt: skip
        super().__init__(dtype=dtype)
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not divide into {num_groups} groups")
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format = data_format
        one = Constant(1.0)
        self.weight = self.create_parameter([num_channels], weight_attr if affine else False, default_initializer=one)
        self.bias = self.create_parameter([num_channels], bias_attr if affine else False, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format)

    def extra_repr(self) -> str:
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class _InstanceNormBase(Layer):
    rank: int

    def __init__(
        self, num_features: int, epsilon: float = 1e-5, momentum: float = 0.9, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str | None = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._num_features, self._epsilon, self._momentum = num_features, epsilon, momentum
        self._data_format = data_format or {3: "NCL", 4: "NCHW", 5: "NCDHW"}[self.rank]
        both = weight_attr is not False and bias_attr is not False
        one = Constant(1.0)
        self.scale = self.create_parameter([num_features], weight_attr if both else False, default_initializer=one)
        self.bias = self.create_parameter([num_features], bias_attr if both else False, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self.rank, 2 if self.rank == 3 else self.rank):
            raise ValueError(f"{type(self).__name__} needs a tensor of {self.rank} axes, not {input.ndim}")
        how = {"momentum": self._momentum, "eps": self._epsilon, "data_format": self._data_format}
        return F.instance_norm(input, weight=self.scale, bias=self.bias, **how)

    def extra_repr(self) -> str:
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(_InstanceNormBase):
    """Normalise each channel of each element of [batch, channels, length]."""

    rank = 3


class InstanceNorm2D(_InstanceNormBase):
    """Normalise each channel of each image."""

    rank = 4


class InstanceNorm3D(_InstanceNormBase):
    """Normalise each channel of each volume."""

    rank = 5


class LocalResponseNorm(Layer):
    """x / (k + alpha * mean of x^2 over neighbouring channels)^beta."""

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, data_format: str = "NCHW",
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._how = (size, alpha, beta, k, data_format)

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, *self._how)

    def extra_repr(self) -> str:
        return "size={}, alpha={}, beta={}, k={}, data_format={}".format(*self._how)


def activated(x: Tensor, act: str | None) -> Tensor:
    """Return x after the activation of this name; ValueError for a name that is none."""
    if act is None:
        return x
    if act == "softmax":
        return softmax(x)
    function = getattr(activation, act, None)
    if function is None or act.startswith("_"):
        raise ValueError(f"no activation is named {act!r}")
    return function(x)
