"""Pooling: the bits of the ops, every target, no access outside of the arrays."""

import numpy as np
import pytest

from dy2st.ops.nn.pooling import AvgPool, AvgPoolGrad, MaxPool
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.conv import (
    max_pool_kernel,
    max_values_kernel,
    mean_pool_gradient_kernel,
    mean_pool_kernel,
    shape_row,
)
from tests.runtime.backends.cpu.native import DTYPES, FLAG, POINTER, TARGETS, Guarded, callable_of, compiled, runnable

_compiled = {}


def functions(dtype, target=None):
    if (dtype, target) not in _compiled:
        kernels = [
            make(dtype, host_target(target))
            for make in (max_pool_kernel, mean_pool_kernel, mean_pool_gradient_kernel, max_values_kernel)
        ]
        code = compiled(*kernels, target=target)
        kinds = ([POINTER] * 4, [POINTER, POINTER, POINTER, FLAG], [POINTER, POINTER, POINTER, FLAG], [POINTER] * 3)
        _compiled[dtype, target] = code, [callable_of(code, k, *kind) for k, kind in zip(kernels, kinds)]
    return _compiled[dtype, target][1]


def configuration(rng):
    """Return a shape with attributes; some rows longer than two vectors."""
    rank = int(rng.integers(1, 4))
    kernel, stride = (tuple(int(v) for v in rng.integers(1, 4, rank)) for _ in range(2))
    spatial = tuple(int(v) for v in rng.integers(3, 9, rank))
    if rng.random() < 0.4:
        spatial = (*spatial[:-1], int(rng.integers(30, 80)))
    padding = tuple((int(rng.integers(0, k)), int(rng.integers(0, k))) for k in kernel)
    return (2, 3, *spatial), {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": rng.random() < 0.5}


def row_of(shape, counts, how):
    return Guarded(np.array(shape_row(shape[0], shape[1], 0, 1, **{
        "in": shape[2:], "kernel": how["kernel"], "out": counts, "stride": how["stride"],
        "low": [low for low, _ in how["padding"]], "high": [high for _, high in how["padding"]],
    }), np.int64))  # fmt: skip


def check(x, how, dtype, target=None):
    largest, mean, mean_gradient, values_only = functions(dtype, target)
    values, places = MaxPool().eval(np, x, **how)
    row = row_of(x.shape, values.shape[2:], how)
    for at_start in (False, True):
        image = Guarded(x, at_start)
        out, numbers = Guarded(np.zeros_like(values), at_start), Guarded(np.zeros_like(places), at_start)
        largest(image.address, out.address, numbers.address, row.address)
        assert np.array_equal(out.array, values, equal_nan=True), how
        assert np.array_equal(numbers.array, places), how
        alone = Guarded(np.zeros_like(values), at_start)
        values_only(image.address, alone.address, row.address)
        assert np.array_equal(alone.array, values, equal_nan=True), how
        for exclusive in (True, False):
            mean(image.address, out.address, row.address, exclusive)
            assert np.array_equal(out.array, AvgPool().eval(np, x, exclusive=exclusive, **how), equal_nan=True), how
            cotangent, written = Guarded(places.astype(x.dtype), at_start), Guarded(np.full_like(x, np.nan), at_start)
            mean_gradient(written.address, cotangent.address, row.address, exclusive)
            answer = AvgPoolGrad().eval(np, cotangent.array, shape=x.shape, exclusive=exclusive, **how)
            assert np.allclose(written.array, answer, rtol=1e-5, atol=1e-6), how


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(3))
def test_random_configurations(seed, dtype):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        shape, how = configuration(rng)
        check(rng.normal(size=shape).astype(DTYPES[dtype]), how, dtype)


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "avx512"])
def test_lesser_targets(target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    rng = np.random.default_rng(5)
    for _ in range(10):
        shape, how = configuration(rng)
        check(rng.normal(size=shape).astype(np.float32), how, "f32", target)


def test_nan_is_larger_than_all_and_the_first_of_equals_wins():
    rng = np.random.default_rng(6)
    for _ in range(15):
        shape, how = configuration(rng)
        x = rng.integers(-2, 2, size=shape).astype(np.float32)
        x[rng.random(shape) < 0.1] = np.nan
        x[rng.random(shape) < 0.2] = -np.inf
        values, places = MaxPool().eval(np, x, **how)
        out, numbers, row = (
            Guarded(np.zeros_like(values)),
            Guarded(np.zeros_like(places)),
            row_of(shape, values.shape[2:], how),
        )
        functions("f32")[0](x.ctypes.data, out.address, numbers.address, row.address)
        assert np.array_equal(out.array, values, equal_nan=True)
        assert np.array_equal(numbers.array, places)


def test_an_empty_batch_has_no_results():
    how = {"kernel": (2,), "stride": (2,), "padding": ((0, 0),), "ceil_mode": False}
    check(np.zeros((0, 3, 8), np.float32), how, "f32")
