"""Transforms: objects that change an image; those by chance draw by Python's `random`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.eager.tensor import Tensor
from dy2st.vision.transforms import functional as F
from dy2st.vision.transforms.base import BaseTransform
from dy2st.vision.transforms.base import Compose as Compose
from dy2st.vision.transforms.colour import BrightnessTransform as BrightnessTransform
from dy2st.vision.transforms.colour import ColorJitter as ColorJitter
from dy2st.vision.transforms.colour import ContrastTransform as ContrastTransform
from dy2st.vision.transforms.colour import HueTransform as HueTransform
from dy2st.vision.transforms.colour import SaturationTransform as SaturationTransform
from dy2st.vision.transforms.functional import _get_image_size as _get_image_size


class _Always(BaseTransform):
    """A function of `functional` with arguments that are known; a subclass gives them to `_settle`."""

    def __init__(self, function: Callable[..., Any], keys: Sequence[str] | None, **arguments: Any):
        super().__init__(keys)
        self._function, self._arguments = function, arguments
        self.__dict__.update(arguments)

    def _apply_image(self, img: Any) -> Any:
        return self._function(img, **self._arguments)


class ToTensor(_Always):
    """An image as a tensor: of 8 bits as float32 from 0 to 1."""

    def __init__(self, data_format: str = "CHW", keys: Sequence[str] | None = None):
        super().__init__(F.to_tensor, keys, data_format=data_format)


class Resize(_Always):
    """An image of (height, width), or whose shorter side is `size`."""

    def __init__(self, size: Any, interpolation: str = "bilinear", keys: Sequence[str] | None = None):
        super().__init__(F.resize, keys, size=size, interpolation=interpolation)


class CenterCrop(_Always):
    """The middle of an image."""

    def __init__(self, size: Any, keys: Sequence[str] | None = None):
        super().__init__(F.center_crop, keys, output_size=_pair(size))
        self.size = _pair(size)


class Normalize(_Always):
    """(image - mean) / std by channels."""

    def __init__(
        self, mean: Any = 0.0, std: Any = 1.0, data_format: str = "CHW", to_rgb: bool = False,
        keys: Sequence[str] | None = None,
    ):  # fmt: skip
        mean, std = ([m] * 3 if isinstance(m, (int, float)) else m for m in (mean, std))
        super().__init__(F.normalize, keys, mean=mean, std=std, data_format=data_format, to_rgb=to_rgb)


class Pad(_Always):
    """An image with a border."""

    def __init__(
        self, padding: Any, fill: Any = 0, padding_mode: str = "constant", keys: Sequence[str] | None = None
    ):  # fmt: skip
        super().__init__(F.pad, keys, padding=padding, fill=fill, padding_mode=padding_mode)


class Grayscale(_Always):
    """An image of greys, in 1 or 3 channels."""

    def __init__(self, num_output_channels: int = 1, keys: Sequence[str] | None = None):
        super().__init__(F.to_grayscale, keys, num_output_channels=num_output_channels)


class Transpose(BaseTransform):
    """An image as an array with its axes in another order."""

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Sequence[str] | None = None):
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img: Any) -> Any:
        if isinstance(img, Tensor):
            return img.transpose(list(self.order))
        array = np.asarray(img)
        return (array if array.ndim == 3 else array[..., None]).transpose(self.order)


class _Flip(BaseTransform):
    flip: Callable[[Any], Any]

    def __init__(self, prob: float = 0.5, keys: Sequence[str] | None = None):
        super().__init__(keys)
        if not 0 <= prob <= 1:
            raise ValueError(f"{type(self).__name__}: prob must be from 0 to 1, not {prob}")
        self.prob = prob

    def _get_params(self, inputs: tuple[Any, ...]) -> bool:
        return random.random() < self.prob

    def _apply_image(self, img: Any) -> Any:
        return type(self).flip(img) if self.params else img


class RandomHorizontalFlip(_Flip):
    """An image with left and right changed, with a probability."""

    flip = staticmethod(F.hflip)


class RandomVerticalFlip(_Flip):
    """An image upside down, with a probability."""

    flip = staticmethod(F.vflip)


class RandomCrop(BaseTransform):
    """A part of an image at a random place; a smaller image is padded first where `pad_if_needed`."""

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0,
        padding_mode: str = "constant", keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        self.size, self.padding, self.pad_if_needed = _pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def _padded(self, img: Any) -> Any:
        height, width = self.size
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        w, h = F.size_of(img)
        if self.pad_if_needed and w < width:
            img = F.pad(img, (width - w, 0), self.fill, self.padding_mode)
        if self.pad_if_needed and h < height:
            img = F.pad(img, (0, height - h), self.fill, self.padding_mode)
        return img

    def _get_params(self, inputs: tuple[Any, ...]) -> tuple[int, int]:
        width, height = F.size_of(self._padded(inputs[list(self.keys).index("image")]))
        if height < self.size[0] or width < self.size[1]:
            raise ValueError(f"RandomCrop: {self.size} is larger than the image of {(height, width)}")
        return random.randint(0, height - self.size[0]), random.randint(0, width - self.size[1])

    def _apply_image(self, img: Any) -> Any:
        return F.crop(self._padded(img), *self.params, *self.size)


class RandomResizedCrop(BaseTransform):
    """A part of an image, of a random share of its area and a random ratio of its sides, resized."""

    def __init__(
        self, size: Any, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3.0 / 4, 4.0 / 3),
        interpolation: str = "bilinear", keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        self.size, self.scale, self.ratio, self.interpolation = _pair(size), scale, ratio, interpolation

    def _get_params(self, inputs: tuple[Any, ...]) -> tuple[int, int, int, int]:
        width, height = F.size_of(inputs[list(self.keys).index("image")])
        for _ in range(10):
            area = width * height * random.uniform(*self.scale)
            ratio = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return random.randint(0, height - h), random.randint(0, width - w), h, w
        whole = width / height
        w = width if whole <= max(self.ratio) else round(height * max(self.ratio))
        h = height if whole >= min(self.ratio) else round(width / min(self.ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def _apply_image(self, img: Any) -> Any:
        return F.resize(F.crop(img, *self.params), self.size, self.interpolation)


class RandomRotation(BaseTransform):
    """An image turned by a random number of degrees: from -degrees to degrees, or of a range."""

    def __init__(
        self, degrees: Any, interpolation: str = "nearest", expand: bool = False, center: Any = None, fill: Any = 0,
        keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        self.degrees, self.interpolation, self.expand = _around(degrees), interpolation, expand
        self.center, self.fill = center, fill

    def _get_params(self, inputs: tuple[Any, ...]) -> float:
        return random.uniform(*self.degrees)

    def _apply_image(self, img: Any) -> Any:
        return F.rotate(img, self.params, self.interpolation, self.expand, self.center, self.fill)


class RandomAffine(BaseTransform):
    """An image turned, moved (by shares of its size), scaled and sheared at random."""

    def __init__(
        self, degrees: Any, translate: Any = None, scale: Any = None, shear: Any = None,
        interpolation: str = "nearest", fill: Any = 0, center: Any = None, keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        self.degrees, self.translate, self.scale = _around(degrees), translate or (0.0, 0.0), scale or (1.0, 1.0)
        self.shear = (*_around(0 if shear is None else shear), 0.0, 0.0)[:4]
        self.interpolation, self.fill, self.center = interpolation, fill, center

    def _get_params(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        size = F.size_of(inputs[list(self.keys).index("image")])
        move = tuple(round(random.uniform(-t * s, t * s)) for t, s in zip(self.translate, size, strict=True))
        shear = random.uniform(*self.shear[:2]), random.uniform(*self.shear[2:])
        return random.uniform(*self.degrees), move, random.uniform(*self.scale), shear

    def _apply_image(self, img: Any) -> Any:
        return F.affine(img, *self.params, self.interpolation, self.fill, self.center)


class RandomPerspective(BaseTransform):
    """An image whose corners move inwards at random, with a probability."""

    def __init__(
        self, prob: float = 0.5, distortion_scale: float = 0.5, interpolation: str = "nearest", fill: Any = 0,
        keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        self.prob, self.distortion_scale = prob, distortion_scale
        self.interpolation, self.fill = interpolation, fill

    def _get_params(self, inputs: tuple[Any, ...]) -> tuple[Any, Any] | None:
        if random.random() >= self.prob:
            return None
        width, height = F.size_of(inputs[list(self.keys).index("image")])
        most_x, most_y = (int(self.distortion_scale * (n // 2)) for n in (width, height))
        corners = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
        inward = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
        return corners, [
            (x + i * random.randint(0, most_x), y + j * random.randint(0, most_y))
            for (x, y), (i, j) in zip(corners, inward, strict=True)
        ]

    def _apply_image(self, img: Any) -> Any:
        return img if self.params is None else F.perspective(img, *self.params, self.interpolation, self.fill)


class RandomErasing(BaseTransform):
    """An image a rectangle of which gets a value (or random ones), with a probability."""

    def __init__(
        self, prob: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0, inplace: bool = False, keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: value is a number, one for each channel, or 'random', not {value!r}")
        self.prob, self.scale, self.ratio, self.value, self.inplace = prob, scale, ratio, value, inplace

    def _get_params(self, inputs: tuple[Any, ...]) -> tuple[int, int, int, int] | None:
        width, height = F.size_of(inputs[list(self.keys).index("image")])
        if random.random() >= self.prob:
            return None
        for _ in range(10):
            area = width * height * random.uniform(*self.scale)
            ratio = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < h < height and 0 < w < width:
                return random.randint(0, height - h), random.randint(0, width - w), h, w
        return None

    def _apply_image(self, img: Any) -> Any:
        if self.params is None:
            return img
        _, _, h, w = self.params
        value = self.value
        if isinstance(img, Tensor) and not isinstance(value, (int, float, str)):
            value = np.asarray(value, "float32").reshape(-1, 1, 1)
        if isinstance(value, str):
            shape = [*img.shape[:-2], h, w] if isinstance(img, Tensor) else [h, w, *np.asarray(img).shape[2:]]
            value = np.random.standard_normal(shape).astype("float32")
        return F.erase(img, *self.params, v=value, inplace=self.inplace)


def _pair(size: Any) -> tuple[int, int]:
    """Return (height, width)."""
    return (int(size), int(size)) if isinstance(size, (int, float)) else tuple(size)


def _around(degrees: Any) -> tuple[float, ...]:
    """Return a range: of one number that around 0."""
    return (-degrees, degrees) if isinstance(degrees, (int, float)) else tuple(degrees)
