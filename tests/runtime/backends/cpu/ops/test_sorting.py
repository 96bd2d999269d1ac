"""`sort`, `argsort` and `topk` as native code: NumPy's order, the first of equal elements first, NaN above all."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import Guarded, same_natively

SHAPES = [(1,), (2,), (3,), (64,), (65,), (1000,), (3, 40), (40, 3), (2, 5, 17), (0, 3), (4, 0)]


def orders(axis):
    def f(x):
        return (
            paddle.sort(x, axis), paddle.sort(x, axis, descending=True), paddle.argsort(x, axis),
            paddle.argsort(x, axis, descending=True),
        )  # fmt: skip

    return f


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_order(shape, dtype, rng):
    x = rng.integers(0, 40, shape).astype(dtype)
    for axis in range(len(shape)):
        same_natively(orders(axis), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers(dtype):
    x = np.array([np.inf, -0.0, np.nan, 3, -np.inf, 0.0, -np.nan, -1e-40, 1e-40, -3, np.nan, 2], dtype)
    same_natively(orders(0), x)
    same_natively(lambda x: (*paddle.topk(x, 3), *paddle.topk(x, 5, largest=False)), x)


@pytest.mark.parametrize("size", [2, 5, 40, 600])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_of_both_signs_stay_in_order(monkeypatch, size, dtype, rng):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    values = np.array([0.0, -0.0, 1.0, -2.0], dtype)[rng.integers(0, 4, (3, size))]
    values[:, :2] = 0.0, -0.0
    for axis in (0, 1):
        static = paddle.jit.to_static(orders(axis))
        for x in (paddle.to_tensor(values), paddle.to_tensor(-values)):
            for found, wanted in zip(static(x), orders(axis)(x), strict=True):
                assert found.numpy().tobytes() == wanted.numpy().tobytes()
                assert static.program_cache


def test_the_ends_of_whole_numbers():
    same_natively(orders(0), np.array([0, -(2**63), 2**63 - 1, -1, 1, 2**63 - 1, -(2**63)]))


@pytest.mark.parametrize("k", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_ones(k, largest, rng):
    x = rng.integers(0, 30, (40, 50)).astype("float32")
    for axis in (0, 1):
        same_natively(lambda x, a=axis: paddle.topk(x, k, a, largest), x)
        same_natively(lambda x, a=axis: paddle.topk(paddle.cumsum(x, a), k, a, largest), x)


def test_too_few_elements_are_the_error_of_the_op():
    static = paddle.jit.to_static(lambda x: paddle.topk(x, 3), full_graph=True)
    static(paddle.ones([2, 4]))
    with pytest.raises(ValueError, match="topk: k is 3, but axis 1 has 2 elements"):
        NativePlan(static.concrete_program.main_program).run([np.ones((2, 2), "float32")])


@pytest.mark.parametrize("at_start", [True, False])
def test_nothing_outside_is_touched(at_start, rng):
    for shape in ((3, 5), (5, 0), (0, 5), (1, 300)):
        same_natively(orders(1), Guarded(rng.normal(size=shape).astype("float32"), at_start).array)
