"""`paddle.linalg`: products, norms and what is made of them."""

from dy2st.functions.linear_algebra import (
    cov,
    cross,
    matmul,
    matrix_norm,
    matrix_power,
    matrix_transpose,
    multi_dot,
    norm,
    vecdot,
    vector_norm,
)
from dy2st.functions.manipulation import diagonal

__all__ = [
    "cov",
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "vecdot",
    "vector_norm",
]
