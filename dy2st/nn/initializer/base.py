"""What an initializer is: a rule that gives a new parameter its values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from dy2st.dtypes import DType
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Settable


class Initializer(Settable):
    """Base of the initializers; `value(shape, dtype)` returns the initial values.

    Called on a tensor, an initializer writes them into it.
    """

    draws_once: ClassVar[bool] = False
    """Whether `value` draws exactly one random tensor, so that it may do so later."""

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        """Return a new tensor of initial values."""
        raise NotImplementedError(f"{type(self).__name__} does not say which values it gives: define `value`")

    def __call__(self, param: Tensor, block: Any = None) -> Tensor:
        values = self.value(tuple(param.shape), param.dtype)
        param.set_value(values)
        return param

    def __repr__(self) -> str:
        shown = ", ".join(f"{name.lstrip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return how many inputs and outputs meet in one element of a weight of this shape.

    >>> fans((3, 5)), fans((8, 4, 3, 3))
    ((3, 5), (36, 72))
    """
    if len(shape) < 2:
        extent = shape[0] if shape else 1
        return extent, extent
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window
