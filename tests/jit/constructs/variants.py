"""What differs between the branches of a tensor `if`: None, numbers, texts, tuples, dtypes, ranks, extents."""

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f


@case(POS, NEG, holds="cond")
def none_or_tensor(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    if y is None:
        y = x * 10
    return y


@case(POS, NEG, holds="cond")
def none_or_tensor_returned(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return y


@case(POS, NEG, holds="cond")
def is_not_none(x):
    y = None
    if x.sum() > 0:
        y = x * 2
    return x if y is not None else x - 1


@case(POS, NEG, holds="cond")
def signs_of_a_number_or_a_tensor(x):
    if x.sum() > 0:
        k = 3
    else:
        k = paddle.to_tensor([5, -6])
    return -k, +k, abs(k), ~k


@case(POS, NEG, holds="cond")
def python_ints(x):
    if x.sum() > 0:
        k = 3
    else:
        k = 5
    return x * k, k


@case(POS, NEG, holds="cond")
def int_or_float(x):
    if x.sum() > 0:
        k = 3
    else:
        k = 0.5
    return x * k, k


@case(POS, NEG, holds="cond")
def strings(x):
    if x.sum() > 0:
        name = "relu"
    else:
        name = "tanh"
    if name == "relu":
        y = x * 3
    else:
        y = x.tanh()
    return y, name


@case(POS, NEG, holds="cond")
def bools(x):
    big = False
    if x.sum() > 0:
        big = True
    return (x if big else x * 2), big, not big


@case(POS, NEG, holds="cond")
def tuples_of_different_length(x):
    if x.sum() > 0:
        pair = (x, x * 2)
    else:
        pair = (x,)
    return pair, len(pair)


@case(POS, NEG, holds="cond")
def isinstance_of_variant(x):
    if x.sum() > 0:
        v = 2
    else:
        v = x
    if isinstance(v, int):
        return x * v
    return v + 1


@case(POS, NEG, holds="cond")
def different_dtype(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.astype("float64")
    return y * 2


@case(POS, NEG, holds="cond")
def int_or_float_tensor(x):
    if x.sum() > 0:
        y = x.astype("int32")
    else:
        y = x
    return y + 1


@case(POS, NEG, holds="cond")
def different_rank(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.reshape([1, -1])
    return y * 2, y.ndim


@case(POS, NEG, holds="cond")
def different_extent(x):
    if x.sum() > 0:
        y = x
    else:
        y = paddle.concat([x, x])
    return y * 2, y.shape


@case(POS, NEG, holds="cond")
def list_or_tensor(x):
    if x.sum() > 0:
        y = [x, x + 1]
    else:
        y = x
    return y


@case(POS, NEG, holds="cond")
def variant_arithmetic(x):
    k = 2
    if x.sum() > 0:
        k = x
    a = k + 1
    b = 1 + k
    c = -k
    d = k * x
    return a, b, c, d, k**2, k > 1


@case(POS, NEG, holds="cond")
def variant_methods_and_items(x):
    if x.sum() > 0:
        y = (x, x * 2)
    else:
        y = [x * 3, x * 4]
    return y[0], y[1].sum(), len(y)


@case(POS, NEG, holds="cond")
def dtype_by_string_variant(x):
    dtype = "float64"
    if x.sum() > 0:
        dtype = "int32"
    return x.astype(dtype)


@case(POS, NEG, holds="cond")
def axis_variant(x):
    y = x.reshape([1, -1])
    axis = 0 if x.sum() > 0 else 1
    return y.sum(axis)


@case(POS, NEG, f(0, 0), holds="cond")
def three_kinds_then_used(x):
    k = None
    if x.sum() > 0:
        k = x
    elif x.sum() < 0:
        k = 3
    if k is None:
        return x
    return x * k


@case(POS, NEG, holds="cond")
def operation_that_one_alternative_refuses(x):
    k = "text"
    if x.sum() > 0:
        k = 2
    return x - k


@case(POS, NEG, holds="cond")
def number_used_as_axis_and_extent(x):
    k = 1 if x.sum() > 0 else 2
    return x.reshape([1] * 2 + [-1]).sum(axis=k), paddle.zeros([k, 2])


@case((f(3.5),), (f(-1),), (f(90),))
def one_of_many_constants(x):
    kind = "none"
    for i, name in enumerate("abcdefghijklmnop"):
        if x.sum() > i:
            kind = name
    if kind == "d":
        x = x * 2
    return x, kind, kind in ("p", "none")
