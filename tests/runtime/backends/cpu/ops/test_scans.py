"""Running sums, products and extrema, and places of extrema, as native code: the bits of NumPy."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import Guarded, runnable, same_natively

SHAPES = [(7,), (3, 40), (40, 3), (2, 5, 17), (3, 1, 4), (0, 3), (4, 0)]
DTYPES = ["float32", "float64", "int32", "int64"]


def tensor(shape, dtype, rng):
    x = rng.normal(size=shape) * 3
    return x.astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_running_sums_and_products(shape, dtype, rng):
    for axis in range(len(shape)):
        same_natively(
            lambda x, a=axis: (paddle.cumsum(x, a), paddle.cumsum(x.flip([a]), a), paddle.cumprod(x, a)),
            tensor(shape, dtype, rng),
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_running_extrema(shape, dtype, rng):
    x = tensor(shape, dtype, rng)
    if x.size > 5 and dtype.startswith("float"):
        x.reshape(-1)[3] = np.nan
    for axis in range(len(shape)):
        same_natively(lambda x, a=axis: (*paddle.cummax(x, a), *paddle.cummin(x, a)), x)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", SHAPES[:-2])
@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "uint8"])
def test_places_of_extrema(shape, dtype, keepdim, rng):
    x = (rng.integers(0, 9, shape) > 4 if dtype == "bool" else rng.integers(0, 9, shape)).astype(dtype)
    for axis in [None, *range(len(shape))]:
        same_natively(lambda x, a=axis: (paddle.argmax(x, a, keepdim), paddle.argmin(x, a, keepdim)), x)


def test_the_first_nan_is_the_largest_and_the_least():
    x = np.arange(70.0, dtype="float32")
    x[[33, 50]] = np.nan
    same_natively(lambda x: (x.argmax(), x.argmin(), x.reshape([2, 35]).argmax(axis=0)), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("length", [1, 7, 8, 15, 16, 17, 33, 129, 700])
def test_places_in_long_rows(dtype, length, rng):
    x = rng.integers(0, 2 if dtype == "bool" else 30, (5, length)).astype(dtype)
    if dtype.startswith("float"):
        x[1, [length // 2, length - 1]] = np.nan
        x[2, [0, length - 1]] = np.nan
        x[3] = -np.inf
        x[4] = rng.choice([0.0, -0.0], length)
    same_natively(lambda x: (x.argmax(axis=1), x.argmin(axis=1), x.argmax(), x.argmin(axis=0)), x)


def test_the_place_in_an_empty_line_is_refused_as_by_the_op():
    static = paddle.jit.to_static(lambda x: x.argmax(axis=1), full_graph=True)
    static(paddle.ones([2, 3]))
    with pytest.raises(ValueError, match="argmax"):
        NativePlan(static.concrete_program.main_program).run([np.ones((2, 0), "float32")])


@pytest.mark.parametrize("cpu", ["avx2", "sse", "scalar"])
def test_lesser_cpus(cpu, monkeypatch, rng):
    if not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    monkeypatch.setenv("DY2ST_CPU", cpu)
    x = rng.normal(size=(3, 5, 9)).astype("float32")
    y = rng.integers(0, 5, (4, 21)).astype("float64")
    y[2, [17, 20]] = np.nan
    same_natively(lambda x: (paddle.cumsum(x, 1), *paddle.cummax(x, 0), x.argmax(axis=1), x.argmin(axis=2)), x)
    same_natively(lambda y: (y.argmax(axis=1), y.argmin(axis=1)), y)
    for dtype in ("float32", "int64", "uint8"):
        for length in (8, 13, 16, 31, 33, 70):
            z = rng.integers(0, 3, (6, length)).astype(dtype)
            same_natively(lambda z: (z.argmax(axis=1), z.argmin(axis=1)), z)


@pytest.mark.parametrize("at_start", [True, False])
def test_nothing_outside_is_touched(at_start, rng):
    for shape in ((3, 5), (5, 0), (0, 5), (1, 17)):
        x = Guarded(rng.normal(size=shape).astype("float32"), at_start).array
        same_natively(lambda x: (paddle.cumsum(x, 0), *paddle.cummax(x, 1), *paddle.cummin(x, 0)), x)
    for length in (1, 15, 16, 17, 33, 255):
        x = Guarded(rng.normal(size=(2, length)).astype("float32"), at_start).array
        same_natively(lambda x: (x.argmax(axis=1), x.argmin(axis=1)), x)


def test_derivatives_of_running_products(rng):
    def f(x):
        x.stop_gradient = False
        return paddle.grad(paddle.cumprod(x, 1).sum() + paddle.cumsum(x, 0).square().sum(), x)[0]

    same_natively(f, rng.normal(size=(3, 6)), exact=False)
