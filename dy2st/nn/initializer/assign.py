"""Initial values that the caller gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.functions.shape.from_data import to_tensor
from dy2st.nn.initializer.base import Initializer
from dy2st.runtime.eager.tensor import Tensor


class Assign(Initializer):
    """The values are those of an array, a tensor, a list or a number, in the shape of the parameter."""

    def __init__(self, value: Any, name: str | None = None):
        if not isinstance(value, (np.ndarray, Tensor, list, tuple, int, float)):
            raise TypeError(f"Assign: value must be an array, a tensor or a list, not {type(value).__name__}")
        self._value = np.array(value.numpy() if isinstance(value, Tensor) else value)

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        if self._value.size != int(np.prod(shape)):
            raise ValueError(
                f"Assign: values of shape {list(self._value.shape)} for a parameter of shape {list(shape)}"
            )
        return to_tensor(self._value.reshape(shape).astype(dtype.numpy))


NumpyArrayInitializer = Assign
