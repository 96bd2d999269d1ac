"""`arange`, `linspace`, `eye`, `one_hot` as native code: NumPy's numbers, and the errors of the ops."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.dtypes import dtype as named
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import FLOAT, INT
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import same_natively

DTYPES = ["float32", "float64", "int32", "int64", "uint8"]


def made(name, types, dtype):
    b = Builder()
    b.block.results = [b.emit(name, [b.argument(t) for t in types], {"dtype": named(dtype)})]
    program = Program({"main": b.block})
    native = NativePlan(program)
    assert all(call.rare for call in native.host_calls)
    return native, compile_plan(program)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arange_of_ints(dtype):
    native, plan = made("arange", [INT, INT, INT], dtype)
    for numbers in ((0, 5, 1), (0, 100, 3), (3, 3, 1), (5, 1, 1), (100, 2, -7), (2**40, 2**40 + 70, 2), (0, 33, 32)):
        np.testing.assert_array_equal(native.run(list(numbers))[0], plan.run(list(numbers))[0])
    with pytest.raises(ValueError, match="arange: step must not be 0"):
        native.run([0, 5, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("types", [(FLOAT, FLOAT, FLOAT), (INT, FLOAT, FLOAT), (INT, INT, FLOAT)])
def test_arange_of_floats(dtype, types):
    native, plan = made("arange", types, dtype)
    for numbers in ((0, 5, 1), (0, 1, 0.1), (3, 1, -0.3), (0, 50, 0.7), (1, 0, 0.5), (-2, 2, 0.25)):
        given = [n if t is INT else float(n) for n, t in zip(numbers, types, strict=True)]
        np.testing.assert_array_equal(native.run(given)[0], plan.run(given)[0])
    with pytest.raises(ValueError, match="arange: step must not be 0"):
        native.run([0 if t is INT else 0.0 for t in types])


@pytest.mark.parametrize("cpu", ["", "scalar"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_linspace(dtype, cpu, monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", cpu)
    native, plan = made("linspace", [FLOAT, FLOAT, INT], dtype)
    for start, stop, count in ((0.0, 1.0, 11), (3.0, 3.0, 40), (-1.0, 200.0, 100), (7.5, 1.0, 1), (0.0, 5e-324, 20)):
        if dtype == "uint8" and start < 0:
            continue
        np.testing.assert_array_equal(native.run([start, stop, count])[0], plan.run([start, stop, count])[0])
    assert native.run([0.0, 1.0, 0])[0].shape == (0,)
    with pytest.raises(ValueError, match="linspace: num must not be negative, but is -1"):
        native.run([0.0, 1.0, -1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_eye(dtype):
    native, plan = made("eye", [INT, INT], dtype)
    for rows, columns in ((2, 3), (4, 1), (0, 3), (17, 17)):
        np.testing.assert_array_equal(native.run([rows, columns])[0], plan.run([rows, columns])[0])


@pytest.mark.parametrize("shape", [(), (4,), (2, 0), (3, 5)])
def test_one_hot(shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 6
    same_natively(lambda x: paddle.nn.functional.one_hot(x, 6), x)


def test_a_number_that_is_no_class_is_a_value_error():
    static = paddle.jit.to_static(lambda x: paddle.nn.functional.one_hot(x, 3), full_graph=True)
    static(paddle.to_tensor([0, 1]))
    with pytest.raises(ValueError, match="one_hot: 3 is not one of 3 classes"):
        NativePlan(static.concrete_program.main_program).run([np.array([1, 3])])
