"""Reductions over axes in the middle and over axes that are apart, as native code."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import Guarded, same_natively

SHAPES = [(3, 4, 5, 17), (2, 40, 1, 3), (2, 3, 0, 5), (0, 2, 3, 4)]
AXES = [[1], [2], [0, 2], [1, 3], [0, 3], [1, 2], [0, 1, 3]]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_truth(shape, axes, keepdim, rng):
    def f(x):
        return (
            x.sum(axes, keepdim=keepdim), x.prod(axes, keepdim=keepdim),
            (x > 0).all(axes, keepdim=keepdim), (x > 0).any(axes, keepdim=keepdim),
        )  # fmt: skip

    x = rng.normal(size=shape)
    same_natively(f, x, exact=False)
    same_natively(f, (x * 3).astype("int32"))


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_means_and_extrema(axes, dtype, rng):
    x = rng.normal(size=SHAPES[0]).astype(dtype)
    x[1, 2, 3, 4] = np.nan
    same_natively(lambda x: (x.max(axes), x.min(axes)), x)
    np.nan_to_num(x, copy=False)
    same_natively(lambda x: x.mean(axes), np.abs(x), exact=False)


def test_the_largest_of_nothing_is_refused_as_by_the_op():
    static = paddle.jit.to_static(lambda x: x.max(axis=1), full_graph=True)
    static(paddle.ones([2, 3, 4]))
    with pytest.raises(ValueError, match="max"):
        NativePlan(static.concrete_program.main_program).run([np.ones((2, 0, 4), "float32")])


@pytest.mark.parametrize("at_start", [True, False])
def test_nothing_outside_is_touched(at_start, rng):
    for shape in SHAPES:
        x = Guarded(rng.normal(size=shape), at_start).array
        same_natively(lambda x: (x.sum([1]), x.sum([0, 2])), x, exact=False)


@pytest.mark.parametrize("shape", [(2, 0, 5), (0, 3, 5), (0, 0, 0)])
def test_exponentials_over_no_elements(shape):
    def f(x):
        x.stop_gradient = False
        y = paddle.nn.functional.softmax(x, 1), paddle.nn.functional.log_softmax(x, 1), paddle.logsumexp(x, 1)
        return *y, paddle.grad(y[0].sum() + y[1].sum(), x)[0]

    same_natively(f, np.zeros(shape, "float32"))
