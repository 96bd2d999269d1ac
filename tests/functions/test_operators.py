"""Operators: values, the promotion table, Python numbers, NumPy operands, what they refuse."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import dy2st as paddle

T = paddle.to_tensor
TABLE = [
    ("int32", "int64", "int64"), ("int64", "float32", "float32"), ("float32", "float64", "float64"),
    ("bool", "int32", "int32"), ("bool", "float16", "float16"), ("uint8", "int8", "int16"),
    ("float64", "complex64", "complex128"), ("float16", "float32", "float32"), ("int8", "int32", "int32"),
]  # fmt: skip
NUMBERS = [
    ("int32", 2, "int32"), ("int32", 2.0, "float32"), ("float64", 2.5, "float64"), ("float16", 2.5, "float16"),
    ("bool", 2, "int64"), ("bool", 2.5, "float32"), ("float32", True, "float32"), ("int64", 2j, "complex64"),
    ("float32", np.float64(2), "float32"), ("float32", np.int64(2), "float32"), ("int32", np.float32(2), "float32"),
]  # fmt: skip
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "want"), TABLE)
@pytest.mark.parametrize("op", [operator.add, operator.mul, paddle.maximum])
def test_tensors_meet_in_the_promoted_dtype(a: str, b: str, want: str, op: Any) -> None:
    if want.startswith("complex") and op is paddle.maximum:
        pytest.skip("complex numbers have no order")
    assert op(T([1], a), T([1], b)).dtype == want
    assert op(T([1], b), T([1], a)).dtype == want


@pytest.mark.parametrize(("dtype", "number", "want"), NUMBERS)
def test_a_number_never_widens_a_tensor(dtype: str, number: Any, want: str) -> None:
    assert (T([1], dtype) + number).dtype == want
    assert (number + T([1], dtype)).dtype == want


@pytest.mark.parametrize("op", OPERATORS)
def test_operators_give_what_numpy_gives(op: Any) -> None:
    x, y = np.array([1.5, -2.0, 4.0]), np.array([2.0, 3.0, -1.5])
    for a, b in ((x, y), (x, 2.0), (3.0, y), (x, y.astype(np.float64))):
        left, right = (T(v) if isinstance(v, np.ndarray) else v for v in (a, b))
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(op(left, right).numpy(), op(a, b), rtol=1e-12)
    np.testing.assert_array_equal(op(T(x), y).numpy(), op(T(x), T(y)).numpy())


def test_numpy_arrays_on_the_left_leave_the_work_to_the_tensor() -> None:
    made = np.array([1.0, 2.0]) - T(np.array([3.0, 5.0]))
    assert isinstance(made, paddle.Tensor)
    assert made.tolist() == [-2.0, -3.0]


def test_integers_divide_into_floats_and_keep_integers_elsewhere() -> None:
    x = T([7, -7])
    assert (x / 2).dtype == "float32"
    assert (x / T([2, 2])).tolist() == [3.5, -3.5]
    assert (x // 2).tolist() == [3, -4]
    assert (x % 4).tolist() == [3, 1]
    assert [t.tolist() for t in divmod(x, 4)] == [[1, -2], [3, 1]]
    assert (x**2).dtype == (2 ** T([1, 2])).dtype == paddle.pow(x, 3).dtype == "int64"
    assert (T([4]) ** 0.5).tolist() == [2.0]
    assert (2.0 ** T([3])).dtype == "float32"
    assert (x + 0.5).dtype == "float32"


def test_bits_and_unary_operators() -> None:
    x, y, p = T([6, 3]), T([5, 1]), T([True, False])
    assert (x & y).tolist() == [4, 1]
    assert (x | y).tolist() == [7, 3]
    assert (x ^ y).tolist() == [3, 2]
    assert (~x).tolist() == [-7, -4]
    assert (~p).tolist() == [False, True]
    assert (p & True).tolist() == [True, False]
    assert (x << 1).tolist() == [12, 6]
    assert (x >> 1).tolist() == [3, 1]
    assert (-x).tolist() == [-6, -3]
    assert (+x) is x
    assert abs(T([-1.5])).tolist() == [1.5]
    assert (p - p).tolist() == [0, 0]


def test_comparison_with_what_is_no_number_is_python_s_own() -> None:
    x = T([1.0])
    assert (x == "a") is False
    assert (x != None) is True  # noqa: E711


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: T([1.0]) + "a", TypeError, "unsupported operand"),
        (lambda: T([1.0]) @ [1.0], TypeError, "unsupported operand"),
        (lambda: paddle.add(T([1.0]), "a"), TypeError, r"add\(\) needs a Tensor, not str 'a'"),
        (lambda: T([1.0, 2.0]) + T([1.0, 2.0, 3.0]), ValueError, "could not be broadcast"),
        (lambda: T([1.0]) & 1, TypeError, "needs integer or bool tensors, not float32"),
        (lambda: ~T([1.0]), TypeError, "needs an integer or bool tensor"),
        (lambda: T([1], "int8") + 300, OverflowError, "out of bounds"),
        (lambda: paddle.divide(T([1.0]), 2, rounding_mode="up"), ValueError, "rounding_mode is 'up'"),
        (lambda: paddle.scale(T([1.0]), act="gel"), ValueError, "act is 'gel'"),
        (lambda: paddle.add_n([]), ValueError, "at least one tensor"),
        (lambda: paddle.polygamma(T([1.0]), -1), ValueError, "n must be an int"),
        (lambda: paddle.where(T([True]), T([1.0])), ValueError, "both x and y"),
        (lambda: paddle.bitwise_right_shift(T([1]), T([1]), is_arithmetic=False), ValueError, "unsigned"),
    ],
)
def test_refusals_say_what_is_wrong(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_where_without_choices_gives_places() -> None:
    rows, columns = paddle.where(T([[0, 1], [1, 0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])


def test_where_meets_numbers() -> None:
    assert paddle.where(T([True, False]), 1.0, T([5, 6])).tolist() == [1.0, 6.0]


def test_out_receives_the_result() -> None:
    out = paddle.zeros([2])
    assert paddle.add(T([1.0, 2.0]), 1.0, out=out) is out
    assert out.tolist() == [2.0, 3.0]


def test_set_default_dtype_changes_what_python_floats_become() -> None:
    paddle.set_default_dtype("float64")
    try:
        assert paddle.get_default_dtype() == "float64"
        assert T(1.5).dtype == T([1]).astype("int32").__truediv__(2).dtype == paddle.ones([1]).dtype == "float64"
        assert T(1j).dtype == "complex128"
    finally:
        paddle.set_default_dtype("float32")
    with pytest.raises(TypeError, match="must be a float dtype, not int32"):
        paddle.set_default_dtype("int32")
