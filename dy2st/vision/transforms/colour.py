"""Transforms of colour by chance: brightness, contrast, saturation, hue, and all of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.vision.transforms import functional as F
from dy2st.vision.transforms.base import BaseTransform, Compose


class _Recolour(BaseTransform):
    """A change of colour by a factor that is drawn from a range around `center`."""

    change: Callable[[Any, float], Any]
    center, most = 1.0, math.inf

    def __init__(self, value: Any, keys: Sequence[str] | None = None):
        super().__init__(keys)
        least = 0.0 if self.center else -self.most
        one = isinstance(value, (int, float))
        low, high = (self.center - value, self.center + value) if one else value
        low = max(low, least) if one else low
        if not least <= low <= high <= self.most:
            raise ValueError(f"{type(self).__name__}: values must be from {least} to {self.most}, not {value!r}")
        self.value = None if low == high == self.center else (low, high)

    def _get_params(self, inputs: tuple[Any, ...]) -> float | None:
        return None if self.value is None else random.uniform(*self.value)

    def _apply_image(self, img: Any) -> Any:
        return img if self.params is None else type(self).change(img, self.params)


class BrightnessTransform(_Recolour):
    """Brightness times a random factor."""

    change = staticmethod(F.adjust_brightness)


class ContrastTransform(_Recolour):
    """Contrast times a random factor."""

    change = staticmethod(F.adjust_contrast)


class SaturationTransform(_Recolour):
    """Saturation times a random factor."""

    change = staticmethod(F.adjust_saturation)


class HueTransform(_Recolour):
    """Colours turned round by a random share of the circle."""

    change = staticmethod(F.adjust_hue)
    center, most = 0.0, 0.5


class ColorJitter(BaseTransform):
    """Brightness, contrast, saturation and hue changed at random, in a random order."""

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0,
        keys: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(keys)
        self.brightness, self.contrast, self.saturation, self.hue = brightness, contrast, saturation, hue
        self._changes: list[BaseTransform] = [
            BrightnessTransform(brightness), ContrastTransform(contrast), SaturationTransform(saturation),
            HueTransform(hue),
        ]  # fmt: skip

    def _apply_image(self, img: Any) -> Any:
        return Compose(random.sample(self._changes, 4))(img)
