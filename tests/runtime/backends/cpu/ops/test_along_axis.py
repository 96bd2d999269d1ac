"""`take_along_axis` and `put_along_axis` as native code: the results of `eval`, and its errors."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import same_natively

SHAPES = [(0, (7, 4, 5)), (1, (3, 6, 5)), (2, (3, 4, 9)), (-1, (3, 4, 0))]


def program(function, *arrays):
    static = paddle.jit.to_static(function)
    static(*map(paddle.to_tensor, arrays))
    return static.concrete_program.main_program


def check(function, *arrays):
    p = program(function, *arrays)
    found, wanted = NativePlan(p).run([a.copy() for a in arrays]), compile_plan(p).run([a.copy() for a in arrays])
    assert np.allclose(found[0], wanted[0], rtol=1e-6)


def operands(axis, shape, dtype):
    rng = np.random.default_rng(len(shape) + axis)
    x, values = rng.normal(size=(3, 4, 5)).astype(np.float32), rng.normal(size=shape).astype(np.float32)
    return x, rng.integers(-x.shape[axis], x.shape[axis], shape).astype(dtype), values


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("axis", "shape"), SHAPES)
def test_reading(axis, shape, dtype):
    x, places, _ = operands(axis, shape, dtype)
    check(lambda x, places: paddle.take_along_axis(x, places, axis, broadcast=False), x, places)


@pytest.mark.parametrize("mode", ["assign", "add"])
@pytest.mark.parametrize(("axis", "shape"), SHAPES)
def test_writing(axis, shape, mode):
    def put(x, places, values):
        return paddle.put_along_axis(x, places, values, axis, mode, broadcast=False)

    check(put, *operands(axis, shape, "int64"))


def test_a_place_outside_is_an_index_error():
    x = np.zeros((3, 4), np.float32)
    p = program(lambda x, places: paddle.take_along_axis(x, places, 1, broadcast=False), x, np.zeros((3, 2), np.int64))
    with pytest.raises(IndexError, match="index 9 is out of range for axis 1 with 4 elements"):
        NativePlan(p).run([x, np.full((3, 2), 9)])


@pytest.mark.parametrize("mode", ["mul", "amax", "amin"])
@pytest.mark.parametrize(("axis", "shape"), SHAPES)
def test_combining(axis, shape, mode):
    x, places, values = operands(axis, shape, "int64")
    values.reshape(-1)[:1] = np.nan

    def put(x, places, values):
        return paddle.put_along_axis(x, places, values, axis, mode, broadcast=False)

    same_natively(put, x, places, values)


def test_derivatives_of_writing():
    x, places, values = operands(1, (3, 6, 5), "int64")

    def f(x, places, values):
        x.stop_gradient = values.stop_gradient = False
        y = paddle.put_along_axis(x, places, values, 1, broadcast=False)
        z = paddle.put_along_axis(x, places, values, 1, "amax", broadcast=False)
        return paddle.grad((y * y).sum() + (z * z).sum(), [x, values])

    same_natively(f, x, places, values, exact=False)


@pytest.mark.parametrize(("dtype", "into"), [("float32", "int32"), ("float64", "int16"), ("int8", "float32")])
def test_bits_as_another_dtype(dtype, into):
    x = np.arange(24).reshape(2, 12).astype(dtype)
    same_natively(lambda x: (paddle.view(x, into), x + 1), x)
