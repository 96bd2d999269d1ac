"""`adaptive_max_pool` in native code: values and places are those of `eval`, for every size, dtype and NaN."""

import numpy as np
import pytest

import dy2st as paddle
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, compare, plans

F = paddle.nn.functional


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cells", [1, 3, 16])
def test_lines_of_every_size(cells, dtype, rng, guarded):
    native, plan = plans(
        lambda x: F.adaptive_max_pool1d(x, cells, return_mask=True), rng.normal(size=(2, 3, 7)).astype(dtype)
    )
    for size in SIZES[1:]:
        x = rng.integers(-3, 3, (2, 3, size)).astype(dtype)
        compare(native.run([x]), plan.run([x]), exact=True)
    assert native.elsewhere == 0


def test_maps_and_volumes(rng, guarded):
    for rank, function in ((2, F.adaptive_max_pool2d), (3, F.adaptive_max_pool3d)):
        native, plan = plans(
            lambda x, pool=function, rank=rank: pool(x, (3, 2, 4)[:rank], return_mask=True),
            rng.normal(size=(1, 2, 5, 4, 6)[: rank + 2]),
        )
        for shape in ((1, 2, 5, 4, 6), (0, 2, 5, 4, 6), (2, 0, 5, 4, 6), (3, 1, 1, 1, 1), (1, 1, 9, 17, 15)):
            x = rng.normal(size=shape[: rank + 2])
            compare(native.run([x]), plan.run([x]), exact=True)


def test_the_first_nan_of_a_cell_is_its_largest(rng):
    native, plan = plans(lambda x: F.adaptive_max_pool1d(x, 3, return_mask=True), rng.normal(size=(1, 1, 7)))
    x = rng.normal(size=(1, 4, 12))
    x[0, 0, [1, 2]] = np.nan
    x[0, 1, [0, 11]] = np.nan
    x[0, 2], x[0, 3, ::2] = -np.inf, np.inf
    compare(native.run([x]), plan.run([x]), exact=True)


def test_empty_axes_are_evals_error(rng):
    native, plan = plans(lambda x: F.adaptive_max_pool1d(x, 3), rng.normal(size=(1, 1, 7)))
    for run in (native.run, plan.run):
        with pytest.raises(ValueError, match=r"adaptive_max_pool cannot pool extents \[0\] to \[3\]"):
            run([np.zeros((1, 1, 0))])


def test_gradients(rng):
    def slope(x):
        x.stop_gradient = False
        (dx,) = paddle.grad((F.adaptive_max_pool2d(x, (2, 3)) ** 2).sum(), [x])
        return dx

    x = rng.normal(size=(2, 2, 5, 7))
    native, plan = plans(slope, x)
    compare(native.run([x]), plan.run([x]))


def test_every_cpu(rng, monkeypatch):
    x = rng.normal(size=(2, 3, 7, 9)).astype("float32")
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        native, plan = plans(lambda x: F.adaptive_max_pool2d(x, (3, 4), return_mask=True), x)
        compare(native.run([x]), plan.run([x]), exact=True)


def test_any_number_of_threads(rng):
    x = rng.normal(size=(64, 8, 17, 15))
    native, plan = plans(lambda x: F.adaptive_max_pool2d(x, 4, return_mask=True), x)
    for _ in thread_counts():
        compare(native.run([x]), plan.run([x]), exact=True)
