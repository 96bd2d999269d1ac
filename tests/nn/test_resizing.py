"""`interpolate` against SciPy's and hand-made interpolation, and what it refuses."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn import functional as F

R = np.random.default_rng(0)
IMAGE = R.normal(size=(2, 3, 5, 4))


def along(x, axis, places, weights_of):
    """Interpolate one axis at `places` (in old elements); `weights_of` a place gives {element: weight}."""
    rows = []
    for place in places:
        rows.append(sum(w * np.take(x, min(max(i, 0), x.shape[axis] - 1), axis) for i, w in weights_of(place).items()))
    return np.stack(rows, axis)


def linear(place):
    low = int(np.floor(place))
    return {low: 1 - (place - low), low + 1: place - low}


def cubic(place):
    low, a = int(np.floor(place)), -0.75

    def weight(d):
        d = abs(d)
        if d <= 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a

    return {i: weight(place - i) for i in range(low - 1, low + 3)}


def places(old, new, corners=False, align=0, cut=True):
    steps = np.arange(new)
    if corners:
        return steps * (old - 1) / max(new - 1, 1)
    if align:
        return steps * old / new
    found = (steps + 0.5) * old / new - 0.5
    return np.maximum(found, 0) if cut else found


def run(x, **how):
    return F.interpolate(paddle.to_tensor(x), **how).numpy()


@pytest.mark.parametrize("how", [{}, {"align_corners": True}, {"align_mode": 1}])
@pytest.mark.parametrize("size", [(7, 9), (3, 2), (1, 1), (5, 4)])
@pytest.mark.proves("nn.functional.interpolate")
def test_bilinear_is_linear_along_both_axes(size, how):
    at = {"corners": how.get("align_corners", False), "align": how.get("align_mode", 0)}
    want = along(IMAGE, 2, places(5, size[0], **at), linear)
    want = along(want, 3, places(4, size[1], **at), linear)
    np.testing.assert_allclose(run(IMAGE, size=size, mode="bilinear", **how), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("corners", [False, True])
def test_bicubic_is_cubic_along_both_axes(corners):
    want = along(IMAGE, 2, places(5, 8, corners, cut=False), cubic)
    want = along(want, 3, places(4, 7, corners, cut=False), cubic)
    got = run(IMAGE, size=[8, 7], mode="bicubic", align_corners=corners)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_nearest_repeats_elements():
    np.testing.assert_array_equal(run(IMAGE, scale_factor=2), IMAGE.repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(run(IMAGE[..., 0], size=[10]), IMAGE[..., 0].repeat(2, 2))
    assert run(np.arange(4).reshape(1, 1, 4), size=2).tolist() == [[[0, 2]]]


def test_linear_and_trilinear_go_with_their_ranks():
    line, volume = IMAGE[..., 0], IMAGE[:, :, :, :, None] * np.ones(2)
    np.testing.assert_allclose(run(line, size=[9], mode="linear"), along(line, 2, places(5, 9), linear), rtol=1e-12)
    want = along(along(along(volume, 2, places(5, 4), linear), 3, places(4, 6), linear), 4, places(2, 3), linear)
    np.testing.assert_allclose(run(volume, size=[4, 6, 3], mode="trilinear"), want, rtol=1e-12)


def test_area_is_the_mean_of_cells():
    np.testing.assert_allclose(run(IMAGE[:, :, :4], size=[2, 2], mode="area"),
                               IMAGE[:, :, :4].reshape(2, 3, 2, 2, 2, 2).mean((3, 5)))  # fmt: skip


def test_the_ratio_is_that_of_the_factor_unless_recomputed():
    x = IMAGE[..., 0]
    by_factor = along(x, 2, np.maximum((np.arange(7) + 0.5) / 1.5 - 0.5, 0), linear)
    np.testing.assert_allclose(run(x, scale_factor=1.5, mode="linear"), by_factor, rtol=1e-12)
    by_size = along(x, 2, places(5, 7), linear)
    np.testing.assert_allclose(
        run(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True), by_size, rtol=1e-12
    )


def test_channels_may_come_last():
    want = np.moveaxis(run(IMAGE, size=[7, 6], mode="bilinear"), 1, -1)
    got = run(np.moveaxis(IMAGE, 1, -1), size=[7, 6], mode="bilinear", data_format="NHWC")
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_program_serves_every_size():
    @paddle.jit.to_static(full_graph=True)
    def twice(x):
        return F.interpolate(x, scale_factor=2, mode="bilinear")

    for x in (IMAGE, IMAGE[:, :, :3, :2]):
        np.testing.assert_allclose(twice(paddle.to_tensor(x)).numpy(), run(x, scale_factor=2, mode="bilinear"))
    assert len(twice.program_cache) == 1


def test_gradients_add_up_to_the_number_of_new_elements():
    x = paddle.to_tensor(IMAGE, stop_gradient=False)
    F.interpolate(x, size=[9, 9], mode="bicubic").sum().backward()
    np.testing.assert_allclose(x.grad.numpy().sum(), 2 * 3 * 81, rtol=1e-10)


@pytest.mark.proves("nn.Upsample nn.UpsamplingBilinear2D nn.UpsamplingNearest2D nn.functional.upsample")
def test_layers_do_what_the_function_does():
    x = paddle.to_tensor(IMAGE)
    pairs = [
        (paddle.nn.Upsample(size=[7, 7], mode="bicubic"), {"size": [7, 7], "mode": "bicubic"}),
        (paddle.nn.UpsamplingNearest2D(scale_factor=2), {"scale_factor": 2}),
        (paddle.nn.UpsamplingBilinear2D(size=[8, 8]), {"size": [8, 8], "mode": "bilinear", "align_corners": True}),
    ]
    for layer, how in pairs:
        np.testing.assert_array_equal(layer(x).numpy(), run(IMAGE, **how))
    np.testing.assert_array_equal(F.upsample(x, [7, 7]).numpy(), run(IMAGE, size=[7, 7]))


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ({}, ValueError, "give one of size and scale_factor"),
        ({"size": [2, 2], "scale_factor": 2}, ValueError, "give one of size and scale_factor"),
        ({"size": [2]}, ValueError, "size needs a number or 2 of them"),
        ({"size": [2, 0]}, ValueError, "an axis of 4 elements cannot get 0"),
        ({"scale_factor": -1}, ValueError, "scale_factor must be positive"),
        ({"size": [2, 2], "mode": "lanczos"}, ValueError, "mode must be one of"),
        ({"size": [2, 2], "mode": "linear"}, ValueError, "mode 'linear' does not go with a tensor of shape"),
        ({"size": [2, 2], "align_corners": True}, ValueError, "align_corners has no meaning in mode 'nearest'"),
        ({"size": [2, 2], "align_mode": 2}, ValueError, "align_mode must be 0 or 1"),
        ({"size": [2, 2], "antialias": True}, NotImplementedError, "antialias=True is not supported"),
        ({"size": [2, 2], "data_format": "NCL"}, ValueError, "data_format must be 'NCHW' or 'NHWC'"),
    ],
)
def test_what_cannot_be_done_is_said(how, kind, text):
    with pytest.raises(kind, match=text):
        run(IMAGE, **how)


@pytest.mark.parametrize("factor", [1.5, 0.7, [0.5, 2.25]])
def test_a_broken_factor_in_a_program_of_every_size(factor):
    def forward(x):
        return F.interpolate(x, scale_factor=factor, mode="bilinear")

    static = paddle.jit.to_static(forward, full_graph=True)
    for size in ([1, 2, 4, 6], [2, 2, 7, 10], [1, 2, 3, 20]):
        x = paddle.randn(size)
        np.testing.assert_allclose(static(x).numpy(), forward(x).numpy(), atol=1e-5)
    assert len(static.program_cache) == 1
