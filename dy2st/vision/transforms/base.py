"""What transforms of images share: one after the other, and which part of a sample each one changes.

A transform of several things gets a tuple, and `keys` says what each is: an "image" goes to `_apply_image`, what a
class of the user's calls "boxes" to its `_apply_boxes`. What has no key stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Compose:
    """One transform after the other.

    >>> import numpy as np
    >>> from dy2st.vision.transforms import CenterCrop, ToTensor
    >>> change = Compose([CenterCrop(2), ToTensor()])
    >>> change(np.zeros([4, 4, 3], "uint8")).shape
    [3, 2, 2]
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]):
        self.transforms = transforms

    def __call__(self, data: Any) -> Any:
        for change in self.transforms:
            data = change(data)
        return data

    def __repr__(self) -> str:
        inner = "".join(f"\n    {change}" for change in self.transforms)
        return f"{type(self).__name__}({inner}\n)"


class BaseTransform:
    """What transforms share: `_get_params` draws once a call, `_apply_<key>` changes what has that key."""

    def __init__(self, keys: Sequence[str] | None = None):
        self.keys: Sequence[str] = ("image",) if keys is None else keys
        for key in self.keys:
            if self._get_apply(key) is None:
                raise NotImplementedError(f"{type(self).__name__} has no _apply_{key} for the key {key!r}")
        self.params: Any = None

    def _get_params(self, inputs: tuple[Any, ...]) -> Any:
        return None

    def _get_apply(self, key: str) -> Callable[[Any], Any] | None:
        return getattr(self, f"_apply_{key}", None)

    def _apply_image(self, img: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it does to an image")

    def __call__(self, inputs: Any) -> Any:
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        self.params = self._get_params(given)
        changed = [self._get_apply(key)(x) for key, x in zip(self.keys, given, strict=False)]  # type: ignore[misc]
        out = (*changed, *given[len(self.keys) :])
        return out[0] if len(out) == 1 else out
