"""The array API standard (data-apis.org/array-api, version 2024.12) on tensors: what `x.__array_namespace__()` returns.

Libraries that follow the standard, such as SciPy with SCIPY_ARRAY_API=1, work with tensors through it as far as they
take shapes that are lists: from the import of this module on, `x.shape` equals tuples and is added to them. Names whose
arguments are the same here and in the standard are those of `paddle.*`; the others are thin faces that translate them.
docs/peers/array_api.md says what is otherwise here than in the standard.

>>> import dy2st as paddle
>>> x = paddle.to_tensor([[3.0, 4.0], [5.0, 12.0]])
>>> xp = x.__array_namespace__()
>>> xp.linalg.vector_norm(x, axis=-1, keepdims=True).tolist()
[[5.0], [13.0]]
"""

from dy2st.array_api import fft, linalg
from dy2st.array_api.arranging import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)  # fmt: skip
from dy2st.array_api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)  # fmt: skip
from dy2st.array_api.data_types import (
    __array_namespace_info__,
    astype,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)  # fmt: skip
from dy2st.array_api.elementwise import round, vecdot
from dy2st.array_api.reducing import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    nonzero,
    prod,
    searchsorted,
    sort,
    std,
    sum,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    var,
)  # fmt: skip
from dy2st.dtypes import bool_ as bool
from dy2st.dtypes import complex64, complex128, float32, float64, int8, int16, int32, int64, uint8
from dy2st.functions.linalg.linalg import matmul, matrix_transpose, tensordot
from dy2st.functions.linalg.numerics import nextafter
from dy2st.functions.math.arithmetic import (  # fmt: skip
    add,
    divide,
    floor_divide,
    multiply,
    negative,
    positive,
    pow,
    remainder,
    subtract,
    trunc,
)
from dy2st.functions.math.comparison import (  # fmt: skip
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    signbit,
    where,
)
from dy2st.functions.math.complex_numbers import conj, imag, real
from dy2st.functions.math.math import (  # fmt: skip
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clip,
    copysign,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    maximum,
    minimum,
    reciprocal,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)

__array_api_version__ = "2024.12"

inf, nan, pi, e, newaxis = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045, None
