"""MultivariateNormal: normal vectors whose elements depend on each other."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from dy2st.distribution.base import Distribution
from dy2st.functions.core.operands import cast_to, floating
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.linalg.matrix_functions import cholesky, triangular_solve
from dy2st.functions.math import math, reduction
from dy2st.functions.math.random import standard_normal
from dy2st.functions.shape.broadcasting import broadcast_shape, broadcast_to
from dy2st.functions.shape.creation import eye
from dy2st.functions.shape.diagonals import diagonal
from dy2st.functions.shape.manipulation import flip, moveaxis, reshape, squeeze, unsqueeze
from dy2st.runtime.eager.tensor import Tensor


class MultivariateNormal(Distribution):
    """The normal distribution of vectors.

    Parameters
    ----------
    loc
        The means [..., n].
    covariance_matrix, precision_matrix, scale_tril
        Exactly one of the covariance, its inverse, and its lower triangular factor, [..., n, n].

    Raises ValueError unless one of the three is given, or where it is no matrix.

    >>> import dy2st as paddle
    >>> normal = paddle.distribution.MultivariateNormal(paddle.zeros([2]), paddle.to_tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> f"{normal.entropy().item():.4f}", normal.batch_shape, normal.event_shape
    ('3.3872', (), (2,))
    """

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        names = [name for name, matrix in given.items() if matrix is not None]
        if len(names) != 1:
            raise ValueError(f"MultivariateNormal needs one of {', '.join(given)}, not {len(names)}")
        loc = floating(loc, "MultivariateNormal")
        loc = loc if loc.ndim else reshape(loc, [1])
        matrix = cast_to(floating(given[names[0]], "MultivariateNormal"), loc.dtype)
        if matrix.ndim < 2:
            raise ValueError(f"MultivariateNormal: {names[0]} must be a matrix, or several, not {matrix.ndim}-D")
        batch = broadcast_shape(matrix.shape[:-2], loc.shape[:-1])
        whole = broadcast_to(matrix, [*batch, *matrix.shape[-2:]])
        self.covariance_matrix = whole if covariance_matrix is not None else None
        self.precision_matrix = whole if precision_matrix is not None else None
        self.scale_tril = whole if scale_tril is not None else None
        self.factor = matrix if scale_tril is not None else (
            cholesky(matrix) if covariance_matrix is not None else _factor_of_inverse(matrix)
        )  # fmt: skip
        self.loc = broadcast_to(loc, [*batch, loc.shape[-1]])
        super().__init__(batch, self.loc.shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return broadcast_to(reduction.sum(math.square(self.factor), -1), self.loc.shape)

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        drawn = standard_normal(self._shape(shape), self.loc.dtype)
        return self.loc + squeeze(matmul(self.factor, unsqueeze(drawn, -1)), -1)

    def log_prob(self, value: Any) -> Tensor:
        value = cast_to(floating(value, "log_prob"), self.loc.dtype)
        apart = squared_distance(self.factor, value - self.loc)
        return -0.5 * (self.loc.shape[-1] * numbers.log(2 * numbers.pi) + apart) - self.log_width()

    def entropy(self) -> Tensor:
        known = 0.5 * (1.0 + numbers.log(2 * numbers.pi)) * self.loc.shape[-1]
        return broadcast_to(known + self.log_width(), list(self._batch_shape))

    def log_width(self) -> Tensor:
        """Return the logarithm of the root of the determinant of the covariance."""
        return reduction.sum(math.log(diagonal(self.factor, axis1=-2, axis2=-1)), -1)


def squared_distance(factor: Tensor, apart: Tensor) -> Tensor:
    """Return the squared length of the z with factor @ z = apart, for each vector [..., n]."""
    return reduction.sum(math.square(squeeze(triangular_solve(factor, unsqueeze(apart, -1), upper=False), -1)), -1)


def _factor_of_inverse(precision: Tensor) -> Tensor:
    """Return the lower L with L @ L^T the inverse: that of the precision with both axes turned about, turned back."""
    turned = flip(cholesky(flip(precision, [-2, -1])), [-2, -1])
    identity = broadcast_to(eye(precision.shape[-1], dtype=precision.dtype), precision.shape)
    return triangular_solve(moveaxis(turned, -1, -2), identity, upper=False)
