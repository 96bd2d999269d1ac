"""Layers that rearrange their input, and the one that does nothing."""

from __future__ import annotations

from typing import Any

from dy2st.functions.shape.manipulation import flatten, unflatten
from dy2st.nn.functional import resizing, shuffling, unfolding
from dy2st.nn.layer import Layer
from dy2st.nn.layers.from_function import REQUIRED, layer_of
from dy2st.runtime.eager.tensor import Tensor


class Identity(Layer):
    """Return the input; arguments of the constructor are accepted and mean nothing."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(dtype=None)

    def forward(self, input: Any) -> Any:
        return input


class Flatten(Layer):
    """Make one axis of those from `start_axis` to `stop_axis`.

    >>> import dy2st as paddle
    >>> paddle.nn.Flatten()(paddle.ones([2, 3, 4])).shape
    [2, 12]
    """

    def __init__(self, start_axis: int = 1, stop_axis: int = -1):
        super().__init__(dtype=None)
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_axis, self.stop_axis)

    def extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, stop_axis={self.stop_axis}"


class Unflatten(Layer):
    """Make several axes, of this shape, of one axis."""

    def __init__(self, axis: int, shape: Any, name: str | None = None):
        super().__init__(dtype=None)
        self.axis, self.shape = axis, shape

    def forward(self, x: Tensor) -> Tensor:
        return unflatten(x, self.axis, self.shape)

    def extra_repr(self) -> str:
        return f"axis={self.axis}, shape={self.shape}"


def _made(name: str, function: Any, **options: Any) -> type[Layer]:
    return layer_of(name, function, function.__doc__, __name__, **options, data_format="NCHW")


PixelShuffle = _made("PixelShuffle", shuffling.pixel_shuffle, upscale_factor=REQUIRED)
PixelUnshuffle = _made("PixelUnshuffle", shuffling.pixel_unshuffle, downscale_factor=REQUIRED)
ChannelShuffle = _made("ChannelShuffle", shuffling.channel_shuffle, groups=REQUIRED)


def _bilinear(x: Any, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW") -> Tensor:
    """Return images in another size, the corners where they were, linear in between."""
    return resizing.interpolate(x, size, scale_factor, "bilinear", align_corners=True, data_format=data_format)


def _nearest(x: Any, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW") -> Tensor:
    """Return images in another size, each new place with the nearest element."""
    return resizing.interpolate(x, size, scale_factor, "nearest", data_format=data_format)


Upsample = layer_of(
    "Upsample", resizing.interpolate, (resizing.interpolate.__doc__ or "").partition("\n")[0], __name__, size=None,
    scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format=None,
    recompute_scale_factor=None,
)  # fmt: skip
UpsamplingNearest2D = _made("UpsamplingNearest2D", _nearest, size=None, scale_factor=None)
UpsamplingBilinear2D = _made("UpsamplingBilinear2D", _bilinear, size=None, scale_factor=None)
_WINDOWS = {"kernel_sizes": REQUIRED, "dilations": 1, "paddings": 0, "strides": 1}
Unfold = layer_of("Unfold", unfolding.unfold, "Return the windows of images as columns.", __name__, **_WINDOWS)
Fold = layer_of(
    "Fold", unfolding.fold, "Return images from columns; what overlaps is added up.", __name__, output_sizes=REQUIRED,
    **_WINDOWS,
)  # fmt: skip
