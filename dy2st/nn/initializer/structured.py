"""Initial values with a structure: orthogonal rows, identity convolutions, bilinear interpolation.

They are computed as arrays; in a hand-built Program they stand as constants.
"""

from __future__ import annotations

import math

import numpy as np

from dy2st.dtypes import DType, float64
from dy2st.functions.math.random import standard_normal
from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.context import replaced
from dy2st.nn.initializer.base import Initializer
from dy2st.runtime.eager.tensor import Tensor


class Orthogonal(Initializer):
    """A matrix with orthonormal rows or columns (the fewer), times `gain`; more axes are seen as [first, all others].

    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2014.
    """

    def __init__(self, gain: float = 1.0, name: str | None = None):
        self._gain = float(gain)

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal needs a parameter of at least 2 axes, not of shape {list(shape)}")
        rows, columns = shape[0], math.prod(shape[1:])
        with replaced(trace=None):
            drawn = standard_normal([max(rows, columns), min(rows, columns)], float64).numpy()
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diag(r))
        matrix = q.T if rows < columns else q
        return to_tensor((self._gain * matrix).reshape(shape).astype(dtype.numpy))


class Dirac(Initializer):
    """Convolution filters that pass their input channels through, as far as there are filters, in each group."""

    def __init__(self, groups: int = 1, name: str | None = None):
        if not isinstance(groups, int) or groups < 1:
            raise ValueError(f"Dirac: groups must be a positive int, not {groups!r}")
        self._groups = groups

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"Dirac needs a convolution's weight of 3 to 5 axes, not of shape {list(shape)}")
        if shape[0] % self._groups:
            raise ValueError(f"Dirac: {shape[0]} filters do not divide into {self._groups} groups")
        array = np.zeros(shape, dtype.numpy)
        middle = tuple(extent // 2 for extent in shape[2:])
        each = shape[0] // self._groups
        for group in range(self._groups):
            for channel in range(min(each, shape[1])):
                array[(group * each + channel, channel, *middle)] = 1
        return to_tensor(array)


class Bilinear(Initializer):
    """Filters of a transposed convolution that upsample by bilinear interpolation; the weight is [c, c, k, k]."""

    def value(self, shape: tuple[int, ...], dtype: DType) -> Tensor:
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear needs a weight of shape [c, c, k, k], not {list(shape)}")
        factor = -(-shape[3] // 2)
        centre = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        line = 1.0 - np.abs(np.arange(shape[3]) / factor - centre)
        return to_tensor(np.broadcast_to(np.outer(line, line), shape).astype(dtype.numpy))
