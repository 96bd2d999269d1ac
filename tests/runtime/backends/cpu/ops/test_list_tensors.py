"""Lists that loops fill, made one tensor as native code, and the derivatives of that."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import same_natively


def collected(x, n):
    rows, i = [], 0
    while i < n:
        rows.append(x[i] * (i + 1))
        i = i + 1
    return rows


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 40), (5, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_rows_side_by_side(shape, dtype, rng):
    x = (rng.normal(size=shape) * 9).astype(dtype)
    same_natively(lambda x, n: paddle.stack(collected(x, n)), x, np.array(4))
    same_natively(lambda x, n: paddle.stack(collected(x, n), axis=-1), x, np.array(4))


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_end_to_end(axis, rng):
    same_natively(lambda x, n: paddle.concat(collected(x, n), axis=axis), rng.normal(size=(5, 3, 4)), np.array(4))


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 40)])
def test_derivatives(shape, rng):
    def f(x, n):
        x.stop_gradient = False
        y = paddle.stack(collected(x, n))
        return paddle.grad((y * y).sum(), x)[0]

    same_natively(f, rng.normal(size=shape), np.array(4), exact=False)


def test_an_empty_list_is_refused_as_by_the_op():
    static = paddle.jit.to_static(lambda x, n: paddle.stack(collected(x, n)), full_graph=True)
    static(paddle.ones([5, 2]), paddle.to_tensor(3))
    native = NativePlan(static.concrete_program.main_program)
    with pytest.raises(ValueError, match=r"stack\(\) needs at least one tensor"):
        native.run([np.ones((5, 2), "float32"), np.array(0)])


def test_rows_of_several_shapes_are_refused_as_by_the_op():
    def f(x, n):
        rows, i = [], 0
        while i < n:
            rows.append(x[i:])
            i = i + 1
        return paddle.concat(rows), paddle.stack(rows)

    static = paddle.jit.to_static(f, full_graph=True)
    static(paddle.ones([5, 2]), paddle.to_tensor(1))
    native = NativePlan(static.concrete_program.main_program)
    with pytest.raises(ValueError, match="stack needs tensors of one shape"):
        native.run([np.ones((5, 2), "float32"), np.array(3)])


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_numbers_as_a_vector(dtype):
    def f(n):
        numbers, i = [], 0
        while i < n:
            numbers.append(i * i)
            i = i + 1
        return paddle.to_tensor(numbers, dtype=dtype)

    same_natively(f, np.array(7))
