"""Padding layers over one to three axes: with a number, by mirroring, by the edge, or around."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.nn.functional.padding import pad
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor

_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


class _Pad(Layer):
    rank: int

    def __init__(
        self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str | None = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=None)
        self._padding = [int(padding)] * (2 * self.rank) if isinstance(padding, (int, np.integer)) else padding
        if isinstance(self._padding, (list, tuple)) and len(self._padding) != 2 * self.rank:
            raise ValueError(f"{type(self).__name__}: padding needs {2 * self.rank} numbers, not {len(self._padding)}")
        self._mode, self._value, self._data_format = mode, value, data_format or _FORMATS[self.rank]

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != self.rank + 2:
            raise ValueError(f"{type(self).__name__} needs a tensor of {self.rank + 2} axes, not the shape {x.shape}")
        return pad(x, self._padding, self._mode, self._value, self._data_format)

    def extra_repr(self) -> str:
        return f"padding={self._padding}, mode={self._mode}, value={self._value}, data_format={self._data_format}"


class Pad1D(_Pad):
    """Pad [batch, channels, length] by [left, right]; the mode is "constant", "reflect", "replicate" or "circular"."""

    rank = 1


class Pad2D(_Pad):
    """Pad images by [left, right, top, bottom].

    >>> import dy2st as paddle
    >>> paddle.nn.Pad2D([1, 0, 0, 2])(paddle.ones([1, 1, 2, 2])).shape
    [1, 1, 4, 3]
    """

    rank = 2


class Pad3D(_Pad):
    """Pad volumes by [left, right, top, bottom, front, back]."""

    rank = 3


class _Fixed(_Pad):
    """A layer of one mode."""

    mode = "constant"

    def __init__(self, padding: Any, data_format: str | None = None, name: str | None = None):
        super().__init__(padding, self.mode, 0.0, data_format)


class _Constant(_Pad):
    """A layer of one value, which has to be given."""

    def __init__(self, padding: Any, value: float, data_format: str | None = None, name: str | None = None):
        super().__init__(padding, "constant", value, data_format)


def _family(stem: str, base: type[_Pad], how: str, **members: Any) -> tuple[type[Layer], type[Layer], type[Layer]]:
    """Return the layers over one, two and three axes."""
    what = ("[batch, channels, length]", "images", "volumes")
    one, two, three = (
        type(
            f"{stem}{r}D",
            (base,),
            {"__doc__": f"Pad {what[r - 1]} {how}.", "__module__": __name__, "rank": r, **members},
        )
        for r in (1, 2, 3)
    )
    return one, two, three


ZeroPad1D, ZeroPad2D, ZeroPad3D = _family("ZeroPad", _Fixed, "with zeros")
ConstantPad1D, ConstantPad2D, ConstantPad3D = _family("ConstantPad", _Constant, "with one value")
ReflectionPad1D, ReflectionPad2D, ReflectionPad3D = _family(
    "ReflectionPad", _Fixed, "with their mirror image, the edge not doubled", mode="reflect"
)
ReplicationPad1D, ReplicationPad2D, ReplicationPad3D = _family(
    "ReplicationPad", _Fixed, "with their edge", mode="replicate"
)
CircularPad1D, CircularPad2D, CircularPad3D = _family("CircularPad", _Fixed, "with their other end", mode="circular")
