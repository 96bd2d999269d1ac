"""`paddle.sparse`: tensors that keep only some elements, as lists of places (COO) or row by row (CSR)."""

from dy2st.missing import missing_in
from dy2st.sparse import nn
from dy2st.sparse.functions import (
    abs,
    add,
    addmm,
    asin,
    asinh,
    atan,
    atanh,
    coalesce,
    deg2rad,
    divide,
    expm1,
    is_same_shape,
    isnan,
    log1p,
    mask_as,
    masked_matmul,
    matmul,
    multiply,
    mv,
    neg,
    pow,
    rad2deg,
    sin,
    sinh,
    slice,
    sqrt,
    square,
    subtract,
    sum,
    tan,
    tanh,
    transpose,
)
from dy2st.sparse.functions import cast_ as cast
from dy2st.sparse.functions import reshape_ as reshape
from dy2st.sparse.tensors import (
    SparseCooTensor,
    SparseCsrTensor,
    sparse_coo_tensor,
    sparse_csr_tensor,
    to_sparse_coo,
    to_sparse_csr,
)

__getattr__ = missing_in(__name__)
