"""Convolutions against the op's own arithmetic: random shapes, every target, no access outside of the arrays."""

import numpy as np
import pytest

from dy2st.ops.nn.conv import Conv, ConvInputGrad, ConvWeightGrad
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.conv import (
    FIELDS,
    convolution_kernel,
    convolution_scratch,
    input_gradient_kernel,
    shape_row,
    weight_gradient_kernel,
)
from tests.runtime.backends.cpu.native import (
    DTYPES,
    INTEGER,
    POINTER,
    TARGETS,
    Guarded,
    callable_of,
    compiled,
    runnable,
)
from tests.shares import examples

TOLERANCE = {"f32": 1e-4, "f64": 1e-11}
_compiled = {}


def functions(dtype, target=None):
    if (dtype, target) not in _compiled:
        kernels = [
            make(dtype, host_target(target))
            for make in (convolution_kernel, input_gradient_kernel, weight_gradient_kernel, convolution_scratch)
        ]
        code = compiled(*kernels, target=target)
        runs = [callable_of(code, kernel, *[POINTER] * 5) for kernel in kernels[:3]]
        _compiled[dtype, target] = code, runs, callable_of(code, kernels[3], POINTER, result=INTEGER)
    return _compiled[dtype, target][1:]


def configuration(rng):
    """Return shapes of image and filters with attributes that fit each other."""
    while True:
        rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
        channels, filters, batch = int(rng.integers(1, 5)), int(rng.integers(1, 12)), int(rng.integers(1, 4))

        def axes(low, high, rank=rank):
            return tuple(int(v) for v in rng.integers(low, high, rank))

        spatial, kernel, stride, dilation = axes(1, 12 if rank < 3 else 6), axes(1, 4), axes(1, 4), axes(1, 3)
        padding = tuple(zip(axes(0, 3), axes(0, 3)))
        if rng.random() < 0.15:
            kernel, stride, padding = (1,) * rank, (1,) * rank, ((0, 0),) * rank
        if rng.random() < 0.2:
            spatial, channels = (*spatial[:-1], 40), 40
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        reaches = [n + sum(p) - (k - 1) * d for n, p, k, d in zip(spatial, padding, kernel, dilation)]
        if min(reaches) > 0:
            return (batch, channels * groups, *spatial), (filters * groups, channels, *kernel), how


def check(x, w, how, dtype, target=None):
    (forward, input_gradient, weight_gradient), size = functions(dtype, target)
    wanted = Conv().eval(np, x, w, **how)
    lows = [low for low, _ in how["padding"]]
    row = Guarded(np.array(shape_row(x.shape[0], x.shape[1], w.shape[0], how["groups"], **{
        "in": x.shape[2:], "kernel": w.shape[2:], "out": wanted.shape[2:], "stride": how["stride"], "low": lows,
        "dilation": how["dilation"],
    }), np.int64))  # fmt: skip
    scratch = Guarded(np.full(-(-size(row.address) // 64) * 64, 0xFF, np.uint8))  # NaN wherever nothing was written
    c = np.random.default_rng(1).normal(size=wanted.shape).astype(x.dtype)
    jobs = (
        (forward, 2, wanted, (x, w, np.full_like(wanted, np.nan))),
        (input_gradient, 0, ConvInputGrad().eval(np, c, w, shape=x.shape, **how), (np.full_like(x, np.nan), w, c)),
        (weight_gradient, 1, ConvWeightGrad().eval(np, x, c, shape=w.shape, **how), (x, np.full_like(w, np.nan), c)),
    )
    for at_start in (False, True):
        for run, written, answer, arrays in jobs:
            guarded = [Guarded(a, at_start) for a in arrays]
            run(*(g.address for g in guarded), row.address, scratch.address)
            found = guarded[written].array
            assert np.allclose(found, answer, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype]), (x.shape, w.shape, how)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_random_configurations(seed, dtype):
    rng = np.random.default_rng(seed)
    for _ in range(examples(12)):
        x, w, how = configuration(rng)
        check(rng.normal(size=x).astype(DTYPES[dtype]), rng.normal(size=w).astype(DTYPES[dtype]), how, dtype)


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "avx512"])
def test_lesser_targets(target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    rng = np.random.default_rng(9)
    for _ in range(examples(12)):
        x, w, how = configuration(rng)
        check(rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32), how, "f32", target)


@pytest.mark.parametrize(("x", "w"), [((0, 2, 5), (3, 2, 2)), ((2, 0, 5), (3, 0, 2)), ((2, 2, 5), (0, 2, 2))])
def test_empty_extents(x, w):
    how = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}
    check(np.ones(x, np.float32), np.ones(w, np.float32), how, "f32")


def test_many_places_and_a_deep_kernel_go_in_blocks():
    rng = np.random.default_rng(2)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, 33, 30, 31), (5, 33, 3, 3)))
    how = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    check(x, w, how, "f32")


@pytest.mark.parametrize(
    ("x", "w", "stride", "dilation", "padding"),
    [
        ((1, 3, 32, 32), (2, 3, 3, 3), (1, 1), (1, 1), (0, 0)),
        ((2, 3, 37, 35), (9, 3, 7, 7), (2, 2), (1, 1), (3, 3)),
        ((5, 2, 11, 10), (7, 2, 5, 5), (1, 1), (1, 1), (0, 0)),
        ((3, 2, 20, 21), (4, 2, 3, 2), (3, 2), (2, 3), (1, 2)),
        ((9, 4, 4, 4), (13, 4, 3, 3), (1, 1), (1, 1), (1, 1)),
        ((3, 4, 8, 8), (5, 4, 1, 1), (2, 2), (1, 1), (0, 0)),
        ((2, 6, 50), (3, 6, 4), (2,), (1,), (1,)),
        ((13, 40, 20, 20), (3, 40, 3, 3), (1, 1), (1, 1), (1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_places_as_vectors(x, w, stride, dilation, padding, dtype):
    rng = np.random.default_rng(5)
    how = {"stride": stride, "padding": tuple((p, p) for p in padding), "dilation": dilation, "groups": 1}
    check(rng.normal(size=x).astype(DTYPES[dtype]), rng.normal(size=w).astype(DTYPES[dtype]), how, dtype)


@pytest.mark.parametrize(
    ("x", "w", "stride", "groups"),
    [
        ((1, 40, 2, 2), (30, 40, 3, 3), 1, 1),
        ((1, 40, 4, 3), (30, 20, 3, 3), 2, 2),
        ((2, 3, 5, 5), (4, 3, 5, 5), 5, 1),
        ((1, 150, 2, 3), (37, 150, 3, 3), 1, 1),  # windows in chunks, places in two blocks
    ],
)
def test_few_places(x, w, stride, groups):
    rng = np.random.default_rng(6)
    how = {"stride": (stride,) * 2, "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": groups}
    check(rng.normal(size=x).astype(np.float32), rng.normal(size=w).astype(np.float32), how, "f32")


@pytest.mark.parametrize(
    ("x", "filters", "padding"),
    [
        ((8, 32, 16, 16), 35, 1),
        ((9, 40, 4, 4), 35, 1),  # mixed
        ((13, 32, 5, 3), 33, 0),
        ((2, 33, 40, 1), 32, 1),
        ((3, 33, 13, 19), 32, 0),
        ((2, 40, 21, 12), 32, 2),
        ((1, 32, 40, 41), 33, 1),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_of_3_by_3_by_tiles(x, filters, padding, dtype):
    rng = np.random.default_rng(8)
    how = {"stride": (1, 1), "padding": ((padding, padding),) * 2, "dilation": (1, 1), "groups": 1}
    w = rng.normal(size=(filters, x[1], 3, 3)) * 0.1
    check(rng.normal(size=x).astype(DTYPES[dtype]), w.astype(DTYPES[dtype]), how, dtype)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("extents", [(16, 16), (4, 4), (40, 1)])
def test_what_is_not_finite_does_not_spread_in_a_tile(special, extents):
    x, w = np.ones((8, 32, *extents), np.float32), np.full((32, 32, 3, 3), 0.01, np.float32)
    x[3, 5, 3, extents[1] // 2] = special
    how = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    (forward, _, _), size = functions("f32")
    fields = {"in": extents, "kernel": (3, 3), "out": extents, "low": (1, 1)}
    row = np.array(shape_row(8, 32, 32, 1, **fields), np.int64)
    scratch, out = np.zeros(size(row.ctypes.data) + 64, np.uint8), np.zeros((8, 32, *extents), np.float32)
    forward(x.ctypes.data, w.ctypes.data, out.ctypes.data, row.ctypes.data, -(-scratch.ctypes.data // 64) * 64)
    np.testing.assert_allclose(out, Conv().eval(np, x, w, **how), rtol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "padding", "groups", "stride"),
    [
        ((8, 6, 2, 2), (5, 6, 3, 3), 1, 1, 1),
        ((17, 4, 3, 2), (6, 2, 3, 2), 1, 2, 1),
        ((6, 3, 1, 1), (4, 3, 3, 3), 1, 1, 1),
        ((7, 3, 4, 4), (9, 3, 2, 2), 0, 1, 1),
        ((8, 6, 4, 4), (5, 6, 3, 3), 1, 1, 2),
        ((11, 4, 5, 7), (6, 2, 1, 1), 0, 2, 2),
        ((9, 3, 7, 8), (5, 3, 2, 3), 1, 1, 3),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_several_small_images_are_mixed(x, w, padding, groups, stride, dtype):
    rng = np.random.default_rng(7)
    how = {"stride": (stride, stride), "padding": ((padding, padding),) * 2, "dilation": (1, 1), "groups": groups}
    check(rng.normal(size=x).astype(DTYPES[dtype]), rng.normal(size=w).astype(DTYPES[dtype]), how, dtype)


ALONE = (
    ((2, 5, 19, 17), (5, 1, 3, 3), 1, 1, 5),
    ((1, 4, 21, 30), (8, 1, 5, 3), 2, 1, 4),
    ((3, 6, 12, 9), (3, 2, 3, 3), 1, 2, 3),
    ((2, 3, 7, 7), (3, 1, 7, 7), 3, 1, 3),
    ((2, 4, 40), (4, 1, 5), 1, 1, 4),
    ((1, 2, 1, 1), (2, 1, 3, 3), 1, 1, 2),
)
"""Shapes of image and filters, stride, dilation, groups."""


def check_alone(x, w, stride, dilation, groups, dtype, target=None):
    rng, rank = np.random.default_rng(10), len(x) - 2
    padding = tuple(((k - 1) * dilation // 2,) * 2 for k in w[2:])
    how = {"stride": (stride,) * rank, "padding": padding, "dilation": (dilation,) * rank, "groups": groups}
    check(rng.normal(size=x).astype(DTYPES[dtype]), rng.normal(size=w).astype(DTYPES[dtype]), how, dtype, target)


@pytest.mark.parametrize("case", ALONE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_of_few_filters_run_over_their_planes_alone(case, dtype):
    check_alone(*case, dtype)


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "avx512"])
def test_groups_of_few_filters_on_lesser_targets(target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    for case in ALONE:
        check_alone(*case, "f32", target)


@pytest.mark.parametrize("stride", [1, 2])
def test_many_small_images_go_side_by_side(stride):
    rng = np.random.default_rng(3)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((37, 66, 5, 4), (10, 33, 3, 3)))
    how = {"stride": (stride, stride), "padding": ((1, 1), (0, 1)), "dilation": (1, 1), "groups": 2}
    check(x, w, how, "f32")


def test_padding_along_an_axis_of_one_element_counts():
    rng = np.random.default_rng(4)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((1, 2, 1, 9, 9), (3, 2, 1, 2, 2)))
    how = {"stride": (2, 1, 1), "padding": ((1, 0), (0, 0), (0, 0)), "dilation": (1, 1, 1), "groups": 1}
    check(x, w, how, "f32")


def test_infinities_and_nan_stay_in_their_windows():
    x, w = np.ones((1, 2, 6, 7), np.float32), np.ones((2, 2, 3, 3), np.float32)
    x[0, 0, 2, 6], x[0, 1, 0, 0] = np.inf, np.nan
    how = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    wanted = Conv().eval(np, x, w, **how)
    assert np.isfinite(wanted).any()
    (forward, _, _), size = functions("f32")
    row = np.array(shape_row(1, 2, 2, 1, **{"in": (6, 7), "kernel": (3, 3), "out": (6, 7), "low": (1, 1)}), np.int64)
    scratch, out = np.zeros(size(row.ctypes.data) + 64, np.uint8), np.zeros_like(wanted)
    forward(x.ctypes.data, w.ctypes.data, out.ctypes.data, row.ctypes.data, -(-scratch.ctypes.data // 64) * 64)
    assert np.array_equal(out, wanted, equal_nan=True)


@pytest.mark.parametrize("stride", [1, 2])
def test_what_is_not_finite_stays_in_the_windows_of_a_lone_filter(stride):
    rng = np.random.default_rng(11)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 9, 8), (3, 1, 3, 3)))
    x[1, 2, 0, 7], x[0, 1, 4, 0] = np.inf, np.nan
    how = {"stride": (stride, stride), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 3}
    wanted = Conv().eval(np, x, w, **how)
    c = np.ones_like(wanted)
    (forward, _, by_filters), size = functions("f32")
    fields = {"in": (9, 8), "kernel": (3, 3), "out": wanted.shape[2:], "stride": (stride, stride), "low": (1, 1)}
    row = np.array(shape_row(2, 3, 3, 3, **fields), np.int64)
    room = np.full(size(row.ctypes.data) + 64, 0xFF, np.uint8)
    scratch, out, dw = -(-room.ctypes.data // 64) * 64, np.zeros_like(wanted), np.zeros_like(w)
    forward(x.ctypes.data, w.ctypes.data, out.ctypes.data, row.ctypes.data, scratch)
    by_filters(x.ctypes.data, dw.ctypes.data, c.ctypes.data, row.ctypes.data, scratch)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dw, ConvWeightGrad().eval(np, x, c, shape=w.shape, **how), rtol=1e-5, atol=1e-5)


def test_a_shape_row_has_a_number_for_each_field():
    assert len(shape_row(1, 1, 1, 1, **{"in": (4, 5), "kernel": (2, 2), "out": (3, 4)})) == len(FIELDS)
