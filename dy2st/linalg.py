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
from dy2st.functions.diagonals import diagonal
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

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
