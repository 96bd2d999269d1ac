"""Convolutions, pooling and attention that are split between threads: the same bits for any number of threads."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.passes import optimise
from dy2st.runtime.backends.cpu.native_executable import NativePlan


def same_bits(function, *arrays):
    """Check results for several numbers of threads; return them."""
    static = paddle.jit.to_static(function, full_graph=True)
    static(*map(paddle.to_tensor, arrays))
    native = NativePlan(optimise(static.concrete_program.main_program))
    runs = []
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        runs.append(native.run([*arrays]))
    for other in runs[1:]:
        for one, two in zip(runs[0], other):
            assert np.array_equal(one, two)
    return runs[0]


@pytest.mark.parametrize(
    ("x", "w", "stride"),
    [
        ((8, 40, 20, 20), (48, 40, 3, 3), 1),
        ((4, 16, 40, 40), (24, 16, 5, 5), 2),
        ((1, 300, 2, 2), (400, 300, 3, 3), 1),
        ((16, 200, 2, 2), (200, 200, 3, 3), 1),
        ((4, 64, 30, 30), (64, 64, 1, 1), 1),
        ((2, 64, 16, 16), (136, 64, 3, 3), 1),  # a few groups of tiles: split by filters too
        ((1, 64, 8, 8), (132, 64, 3, 3), 1),  # a few vectors of places
        ((8, 64, 4, 4), (72, 64, 3, 3), 1),  # tiles of mixed images
        ((9, 40, 4, 4), (48, 40, 3, 3), 2),
    ],
)
def test_convolutions_and_their_gradients(x, w, stride, rng):
    padding = w[2] // 2

    def f(x, w):
        x.stop_gradient = w.stop_gradient = False
        y = F.conv2d(x, w, stride=stride, padding=padding)
        return y, *paddle.grad((y * y).sum(), [x, w])

    same_bits(f, *(rng.normal(size=s).astype("float32") for s in (x, w)))


@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolutions_and_their_gradients(stride, rng):
    def f(x, w):
        x.stop_gradient = w.stop_gradient = False
        y = F.conv2d(x, w, stride=stride, padding=1, groups=24)
        return y, *paddle.grad((y * y).sum(), [x, w])

    same_bits(f, *(rng.normal(size=s).astype("float32") for s in ((3, 24, 30, 31), (24, 1, 3, 3))))


def test_pooling(rng):
    x = rng.normal(size=(8, 32, 60, 60)).astype("float32")
    same_bits(lambda x: (F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, 2)), x)


def test_attention(rng):
    x = rng.normal(size=(4, 200, 4, 32)).astype("float32")
    (out,) = same_bits(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), x)
    assert np.isfinite(out).all()
