"""What sampling, unpooling and CTC refuse, their gradients, and CTC in a Program."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn import functional as F
from tests.values.tables.sampling import SCORES, SIZES, STEPS, TEXTS

Z = paddle.zeros


def test_ctc_in_a_program_serves_every_length():
    static = paddle.jit.to_static(lambda *given: F.ctc_loss(*given), full_graph=True)
    for scores in (SCORES, SCORES[:3], np.concatenate([SCORES, SCORES])):
        found = []
        for function in (F.ctc_loss, static):
            x = paddle.to_tensor(scores, stop_gradient=False)
            loss = function(x, *map(paddle.to_tensor, (TEXTS, np.minimum(STEPS, len(scores)), SIZES)))
            loss.backward()
            found.append((loss.item(), x.grad.numpy()))
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-12)


def slope(function, x, direction):
    step = 1e-6
    up, down = (function(paddle.to_tensor(x + s * step * direction)).item() for s in (1, -1))
    return (up - down) / (2 * step)


@pytest.mark.parametrize("name", ["ctc", "grid", "image"])
def test_gradient_against_differences(name, rng):
    image, grid = rng.normal(size=(1, 2, 4, 5)), rng.uniform(-0.9, 0.9, (1, 3, 3, 2))
    function, x = {
        "ctc": (lambda s: F.ctc_loss(s, *map(paddle.to_tensor, (TEXTS, STEPS, SIZES))), SCORES),
        "grid": (lambda g: (F.grid_sample(paddle.to_tensor(image), g) ** 2).sum(), grid),
        "image": (lambda i: (F.grid_sample(i, paddle.to_tensor(grid)) ** 2).sum(), image),
    }[name]  # fmt: skip
    at = paddle.to_tensor(x, stop_gradient=False)
    function(at).backward()
    direction = rng.normal(size=x.shape)
    assert (at.grad.numpy() * direction).sum() == pytest.approx(slope(function, x, direction), rel=1e-5)


def test_a_label_too_long_for_its_sequence_has_an_infinite_loss_without_a_gradient():
    x = paddle.to_tensor(SCORES, stop_gradient=False)
    loss = F.ctc_loss(x, *map(paddle.to_tensor, (TEXTS, STEPS - [0, 1, 0], SIZES)), reduction="none")
    assert np.isinf(loss.numpy()).tolist() == [False, True, False]
    loss.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert not x.grad.numpy()[:, 1].any()


def test_norm_by_times_divides_the_gradient_alone():
    grads = []
    for how in (False, True):
        x = paddle.to_tensor(SCORES, stop_gradient=False)
        loss = F.ctc_loss(x, *map(paddle.to_tensor, (TEXTS, STEPS, SIZES)), reduction="sum", norm_by_times=how)
        loss.backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(grads[1], grads[0] / STEPS[:, None], rtol=1e-9)


def test_unpooling_is_undone_by_pooling(rng):
    x = paddle.to_tensor(rng.uniform(1, 2, (2, 3, 6, 8)))
    pooled, places = F.max_pool2d(x, 2, return_mask=True)
    again = F.max_unpool2d(pooled, places, 2, output_size=x.shape)
    np.testing.assert_array_equal(F.max_pool2d(again, 2).numpy(), pooled.numpy())


def test_empty_batches_grids_and_labels():
    assert F.grid_sample(Z([0, 2, 3, 3]), Z([0, 2, 2, 2])).shape == [0, 2, 2, 2]
    assert F.grid_sample(Z([1, 2, 3, 3]), Z([1, 0, 2, 2])).shape == [1, 2, 0, 2]
    assert F.max_unpool2d(Z([0, 1, 2, 2]), Z([0, 1, 2, 2], "int64"), 2).shape == [0, 1, 4, 4]
    lengths = Z([0], "int64")
    assert F.ctc_loss(Z([3, 0, 4]), Z([0, 2], "int32"), lengths, lengths, reduction="none").shape == [0]
    nothing = (Z([2, 0], "int32"), paddle.to_tensor([3, 2]), paddle.to_tensor([0, 0]))
    found = F.ctc_loss(Z([3, 2, 4]), *nothing, reduction="none").numpy()
    np.testing.assert_allclose(found, [3 * np.log(4), 2 * np.log(4)], rtol=1e-6)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: F.affine_grid(Z([1, 2, 2]), [1, 1, 2, 2]), ValueError, r"theta of shape \[1, 2, 2\] does not"),
    (lambda: F.grid_sample(Z([1, 1, 2, 2]), Z([1, 2, 2, 3])), ValueError, r"a grid of shape \[1, 2, 2, 3\] does"),
    (lambda: F.grid_sample(Z([1, 1, 2, 2]), Z([1, 2, 2, 2]), "cubic"), ValueError, "mode is 'cubic', not 'bilinear'"),
    (lambda: F.grid_sample(Z([1, 1, 2, 2]), Z([1, 2, 2, 2]), padding_mode="wrap"), ValueError, "mode is 'wrap'"),
    (lambda: F.max_unpool1d(Z([2, 3]), Z([2, 3]), 2), ValueError, r"needs x and indices of rank 3, not \[2, 3\]"),
    (lambda: F.max_unpool2d(Z([1, 2, 2, 1]), Z([1, 2, 2, 1]), 2, data_format="NHWC"), ValueError, "channels as axis 1"),
    (lambda: F.ctc_loss(Z([2, 3]), Z([2, 1]), Z([2]), Z([2])), ValueError, r"needs scores \[time, batch, classes\]"),
    (lambda: F.ctc_loss(Z([2, 1, 3]), Z([1, 1]), Z([1]), Z([1]), reduction="x"), ValueError, "ctc_loss: reduction"),
])  # fmt: skip
def test_wrong_use_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("align_corners", [False, True])
def test_a_grid_in_a_program_serves_every_size(align_corners):
    def forward(x, theta):
        return F.grid_sample(x, F.affine_grid(theta, paddle.shape(x), align_corners), align_corners=align_corners)

    static = paddle.jit.to_static(forward, full_graph=True)
    theta = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 2, 3)).astype("float32"))
    for size in ([2, 3, 4, 5], [2, 1, 1, 3], [2, 2, 7, 1]):
        x = paddle.randn(size)
        np.testing.assert_allclose(static(x, theta).numpy(), forward(x, theta).numpy(), atol=1e-5)


@pytest.mark.parametrize("padding_mode", ["border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_places_on_the_border_have_the_slope_to_the_right(padding_mode, align_corners):
    """PaddlePaddle's: the last pixel has the next one, which is outside and zero, on its right."""
    image = np.array([[[[3.0, 5.0, 11.0]]]])
    first = -1.0 if align_corners else -2 / 3
    grid = np.array([[[[first, 0.0], [0.0, 0.0], [-first, 0.0]]]])
    wanted = np.array([2.0, 6.0, -11.0]) * (1.0 if align_corners else 1.5)

    def slopes(x, grid):
        made = paddle.nn.functional.grid_sample(x, grid, padding_mode=padding_mode, align_corners=align_corners)
        return paddle.grad(made.sum(), grid)[0][0, 0, :, 0]

    for function in (slopes, paddle.jit.to_static(slopes, full_graph=True)):
        for _ in range(2):
            given = paddle.to_tensor(grid, stop_gradient=False)
            np.testing.assert_allclose(function(paddle.to_tensor(image), given).numpy(), wanted, rtol=1e-6)
