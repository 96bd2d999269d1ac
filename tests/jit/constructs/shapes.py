"""Shapes as tensors and lists of numbers, axes and extents that change in place, columns of rows."""

import numpy as np

import dy2st as paddle
import dy2st.nn.functional as F
from tests.jit.constructs.cases import case, f

A, B = f([[1, 2, 3], [4, 5, 6]]), f([[1, 2], [3, 4], [5, 6]])
SMALL, LARGE = np.arange(4, dtype="float32").reshape(1, 1, 2, 2), np.arange(9, dtype="float32").reshape(1, 1, 3, 3)


@case(A, B)
def a_shape_tensor_in_the_place_of_a_shape(x):
    shape = paddle.shape(x)
    made = paddle.zeros(shape) + paddle.full(shape, 2.0) * paddle.ones([shape[0], 1])
    return made * x, paddle.empty(shape).shape == x.shape


@case((A, B), (B, A))
def reshape_and_expand_to_a_shape_tensor(x, y):
    found = x.reshape(paddle.shape(y)) * y
    return found, x.sum(0, keepdim=True).expand(paddle.shape(x)), x.reshape(paddle.shape(y)[::-1])


@case((SMALL, LARGE), (LARGE, SMALL))
def interpolate_to_a_part_of_a_shape_tensor(x, y):
    return F.interpolate(x, size=paddle.shape(y)[2:], mode="bilinear") + y, F.interpolate(x, paddle.shape(y)[-2:]) * y


@case(A, B)
def a_shape_tensor_computed_with(x):
    rows, columns = (paddle.shape(x) * 2).tolist()
    halves = paddle.concat([paddle.shape(x)[:1], paddle.to_tensor([1])])
    return paddle.ones([rows, columns]) * x.sum(), x.mean(1).reshape(halves), paddle.shape(x).astype("int32").tolist()


@case(A, f([[1, 2, 3]]))
def the_numbers_of_a_tensor_listed(x):
    first, *rest = paddle.stack([x.sum(), x.max(), x.mean() * 2]).tolist()
    big = [v for v in rest if v > 4]
    return x * first, len(big), x.max().tolist()


@case(A, B)
def extents_in_an_array(x):
    return x / paddle.to_tensor(np.array([x.shape[1]])), x * paddle.to_tensor(np.array(x.shape)).prod()


@case(A, B)
def shape_changed_in_place(x):
    y = x * 2
    row = y[0]
    y.unsqueeze_(0)
    row += 1
    y *= 2
    again = y[0, 1:]
    y.reshape_([-1])
    again += 1
    y += 3
    return y, row, again


@case(A, B)
def shape_changed_in_place_after_a_write(x):
    y = x * 2
    y += 1
    same = y
    column = x[:, 0] * 1
    same.transpose_([1, 0])
    column.unsqueeze_(1)
    y *= 2
    return y, same is y, column * x


@case(A, B, holds="while")
def shape_changed_in_place_in_a_loop(x):
    found = []
    for i in range(x.shape[0]):
        y = x[i] * 2
        y.unsqueeze_(0)
        found.append(y)
    return paddle.concat(found)


@case(A, B)
def dtype_changed_in_place(x):
    y = x * 2
    y.cast_("float64")
    z = x * 1
    z.less_than_(paddle.full([1], 3.0))
    return y + 1, z


@case(A, B, holds="while")
def columns_of_rows(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append((x[i], [x[i] * 2, i]))
    first, second = zip(*rows)
    total = 0
    for y, k in second:
        total = total + y * k
    return paddle.stack(first), total


@case(A, f([[-1, -1]]), holds="while")
def columns_of_no_rows(x):
    rows = []
    while x.sum() > 0:
        rows.append((x, x * 2))
        x = x - 2
    try:
        first, second = zip(*rows)
    except ValueError:
        return x
    return paddle.stack(first) + paddle.stack(list(second))


@case((A, np.array([1, 2])), (B, np.array([0, 3, 1])), (f([[1, 2]]), np.array([2])), (A, np.array([0, 0])))
def slices_repeated_as_often_as_a_tensor_says(x, counts):
    made = paddle.repeat_interleave(x, counts, axis=0)
    return made * 2, made.shape[0], paddle.repeat_interleave(x.t(), counts, 1)
