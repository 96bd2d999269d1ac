"""Tensors written in place: setitem with every index form, views, in-place ops, augmented assignment."""

import numpy as np

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s

GRID = f([[1, 2, 3], [4, 5, 6]])


def form(name, text, *more, **words):
    """Make a case of a `y[...] = v` in a branch and in a loop."""


@case(GRID, -GRID, holds="cond")
def setitem_int(x):
    y = x * 1
    if x.sum() > 0:
        y[0] = 7.0
    else:
        y[-1] = x[0] * 2
    return y


@case((GRID, f([[1, 2, 3]])), (GRID, f([[4, 5, 6]])), holds="squeeze")
def setitem_of_what_has_an_axis_in_front(x, v):
    y = x * 1
    y[1] = v
    y[y > 4] += v[:, :1]
    return y


@case(GRID, -GRID, holds="cond")
def setitem_slices(x):
    y = x * 1
    if x.sum() > 0:
        y[:, 1:] = x[:, :2]
    else:
        y[::1, ::2] = 0.0
    return y


@case(GRID, -GRID, holds="cond")
def setitem_mask(x):
    y = x * 1
    if x.sum() > 0:
        y[x > 2] = 0.0
    else:
        y[x < -4] = -1.0
    return y


@case(GRID, -GRID, holds="cond")
def setitem_fancy(x):
    y = x * 1
    at = paddle.to_tensor([0, 2])
    if x.sum() > 0:
        y[:, at] = x[:, :2] * 10
    else:
        y[[0, 1], [1, 2]] = 5.0
    return y


@case(GRID, -GRID, holds="cond")
def setitem_ellipsis_none(x):
    y = x * 1
    if x.sum() > 0:
        y[..., 0] = 9.0
    else:
        y[None, 1] = 3.0
    return y


@case((f(1, 2, 3), n(2)), (f(1, 2, 3), n(0)))
def setitem_tensor_index(x, k):
    y = x * 1
    y[k] = 100.0
    return y


@case((f(1, 2, 3, 4), n(3)), (f(1, 2, 3, 4), n(0)), holds="counted_while")
def setitem_in_loop(x, k):
    y = paddle.zeros([4])
    for i in range(k):
        y[i] = x[i] * 2
    return y


@case((f(1, 2, 3, 4), n(2)), holds="counted_while")
def setitem_slice_in_loop(x, k):
    y = x * 1
    for i in range(k):
        y[i : i + 2] = y[i : i + 2] * 2
    return y


@case(GRID, -GRID, holds="cond")
def view_then_mutation(x):
    y = x * 1
    v = y[0]
    if x.sum() > 0:
        y[0, 1] = 50.0
    else:
        v[2] = -50.0
    return y, v


@case(POS, NEG, holds="cond")
def in_place_methods(x):
    y = x * 1
    if x.sum() > 0:
        y.add_(x)
    else:
        y.scale_(3.0)
    return y


@case((POS, n(3)), holds="counted_while")
def in_place_in_loop(x, k):
    y = x * 1
    for _ in range(k):
        y.add_(x)
    return y


@case(POS, NEG, holds="cond")
def augmented_name_rebinds(x):
    y = x * 1
    z = y
    if x.sum() > 0:
        y += 1
    return y, z


@case(GRID, -GRID, holds="cond")
def augmented_item(x):
    y = x * 1
    if x.sum() > 0:
        y[0] += 1
        y[:, 1] *= 2
    return y


@case(GRID)
def write_through_view_of_view(x):
    y = x * 1
    v = y.reshape([3, 2])
    w = v[1]
    w[0] = 77.0
    return y, v, w


@case(paddle.to_tensor([1, 2, 3]).numpy())
def mutates_the_argument(x):
    x[0] = 100
    return x * 2


@case(paddle.to_tensor([1, 2, 3]).numpy())
def mutates_and_returns_the_argument(x):
    x.add_(paddle.to_tensor([1, 1, 1]))
    return x


@case((paddle.to_tensor([1, 2, 3]).numpy(), n(1)), (paddle.to_tensor([1, 2, 3]).numpy(), n(-1)), holds="cond")
def mutates_the_argument_in_branch(x, k):
    if k > 0:
        x[1] = 50
    return x.sum()


@case(GRID, holds="counted_while")
def running_total_by_slices(x):
    y = paddle.zeros([3])
    for row in x:
        y[:] = y + row
    return y


@case((f(1, 2, 3, 4, 5), n(4)), holds="counted_while")
def prefix_sum(x, k):
    y = x * 1
    for i in range(k):
        y[i + 1] = y[i + 1] + y[i]
    return y


@case(POS, NEG, holds="cond")
def detach_and_clone(x):
    y = x.detach()
    z = x.clone()
    if x.sum() > 0:
        z = z + y
    return z, y


@case((GRID, s(1)), (GRID, s(-1)), holds="cond")
def setitem_grad_of_value(x, v):
    y = x * 2
    if v > 0:
        y[1, 1] = v * 3
    return y * y


@case(f([[1, 2], [3, 4]]))
def numpy_index_forms(x):
    return x[np.array([1, 0])], x[-1, ..., None], x[True], x[:, [1]], x[paddle.to_tensor([True, False])]


@case(f(1, 2, 3, 4), f(-1, -2, 3, -4), holds="cond")
def a_chosen_row_that_is_written(x):
    m = x.reshape([2, 2]) * 1
    row = m[0] if x.sum() > 0 else m[1]
    row[0] = 5
    m[0] = m[1] * 2
    row += 1
    return m, row.sum()


@case(f(1, 2, 3, 4), f(-1, -2, 3, -4), holds="cond")
def a_view_of_a_chosen_row(x):
    m = x.reshape([2, 2]) * 1
    for i in range(3):
        if m.sum() > i:
            row = m[0]
        else:
            row = m[1]
        row[i % 2] = m.sum()
        part = row[1:]
        part *= 2
        if x[0] > 0:
            row[0] = m[1, 1] * 3
    return m
