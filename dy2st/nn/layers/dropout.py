"""Dropout layers: they drop while they train and pass their input through otherwise."""

from __future__ import annotations

from typing import Any

from dy2st.nn.functional import dropping as F
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor


class Dropout(Layer):
    """Zero each element with probability p in training."""

    def __init__(
        self, p: float = 0.5, inplace: bool = False, axis: Any = None, mode: str = "upscale_in_train",
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.axis, self.training, mode=self.mode)

    def extra_repr(self) -> str:
        return f"p={self.p}, axis={self.axis}, mode={self.mode}"


class _Channels(Layer):
    function: Any

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None):
        super().__init__(dtype=None)
        self.p, self.data_format = p, data_format

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.data_format)

    def extra_repr(self) -> str:
        return f"p={self.p}, data_format={self.data_format}"


class Dropout2D(_Channels):
    """Zero each channel of images with probability p in training."""

    function = staticmethod(F.dropout2d)


class Dropout3D(_Channels):
    """Zero each channel of volumes with probability p in training."""

    function = staticmethod(F.dropout3d)

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(p, data_format)


class _Alpha(Layer):
    function: Any

    def __init__(self, p: float = 0.5, name: str | None = None):
        super().__init__(dtype=None)
        self.p = p

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class AlphaDropout(_Alpha):
    """Dropout for SELU networks, which keeps mean 0 and variance 1."""

    function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Alpha):
    """Alpha dropout of whole channels."""

    function = staticmethod(F.feature_alpha_dropout)
