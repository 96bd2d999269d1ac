"""Constant initial values, the same for all elements."""

from __future__ import annotations

from dy2st.dtypes import DType
from dy2st.functions.shape.creation import full
from dy2st.nn.initializer.base import Initializer
from dy2st.runtime.eager.tensor import Tensor


class Constant(Initializer):
    """Every element is `value`."""

    def __init__(self, value: float = 0.0):
        if not isinstance(value, (int, float)):
            raise TypeError(f"Constant: value must be a number, not {type(value).__name__}")
        self._value = value

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        return full(list(shape), self._value, dtype)
