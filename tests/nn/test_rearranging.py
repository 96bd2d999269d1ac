"""Padding, flattening and shuffling layers, and nn.utils."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.nn import functional as F
from dy2st.nn import utils

X = np.arange(48, dtype=np.float32).reshape(2, 4, 2, 3)

LAYERS = {
    "Identity": (lambda: nn.Identity(3, name="x"), X),
    "Flatten": (lambda: nn.Flatten(1, 2), X.reshape(2, 8, 3)),
    "Unflatten": (lambda: nn.Unflatten(1, [2, -1]), X.reshape(2, 2, 2, 2, 3)),
    "Pad2D": (lambda: nn.Pad2D([1, 0, 0, 2], value=7.0),
              np.pad(X, [(0, 0), (0, 0), (0, 2), (1, 0)], constant_values=7)),
    "Pad2D reflect": (lambda: nn.Pad2D(1, "reflect"), np.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)], "reflect")),
    "Pad2D replicate": (lambda: nn.Pad2D(2, "replicate"), np.pad(X, [(0, 0), (0, 0), (2, 2), (2, 2)], "edge")),
    "Pad2D circular": (lambda: nn.Pad2D(1, "circular"), np.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)], "wrap")),
    "ZeroPad2D": (lambda: nn.ZeroPad2D(1), np.pad(X, [(0, 0), (0, 0), (1, 1), (1, 1)])),
    "PixelShuffle": (
        lambda: nn.PixelShuffle(2),
        np.stack([[[[X[n, (i % 2) * 2 + j % 2, i // 2, j // 2] for j in range(6)] for i in range(4)]] for n in (0, 1)]),
    ),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), X[:, [0, 2, 1, 3]]),
}  # fmt: skip


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, static):
    make, want = LAYERS[name]
    layer = paddle.jit.to_static(make(), full_graph=True) if static else make()
    np.testing.assert_array_equal(layer(paddle.to_tensor(X)).numpy(), want)


def test_unshuffle_is_the_inverse():
    x = paddle.to_tensor(X)
    np.testing.assert_array_equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)).numpy(), X)
    last = paddle.to_tensor(X.transpose(0, 2, 3, 1))
    found = F.pixel_shuffle(last, 2, "NHWC").numpy()
    np.testing.assert_array_equal(found, F.pixel_shuffle(x, 2).numpy().transpose(0, 2, 3, 1))


def test_pads_of_other_ranks():
    assert nn.Pad1D([1, 2])(paddle.ones([1, 1, 3])).tolist() == [[[0.0, 1.0, 1.0, 1.0, 0.0, 0.0]]]
    assert nn.ZeroPad1D(1)(paddle.ones([1, 1, 1])).tolist() == [[[0.0, 1.0, 0.0]]]
    assert nn.Pad3D(1)(paddle.ones([1, 1, 2, 2, 2])).shape == [1, 1, 4, 4, 4]
    assert nn.ZeroPad3D([1, 0, 0, 0, 0, 0])(paddle.ones([1, 1, 2, 2, 2])).shape == [1, 1, 2, 2, 3]


def test_temporal_shift():
    x = np.arange(16, dtype=np.float32).reshape(4, 4, 1, 1)
    out = F.temporal_shift(paddle.to_tensor(x), 2, 0.25).numpy()[:, :, 0, 0]
    np.testing.assert_array_equal(out, [[0, 5, 2, 3], [0, 0, 6, 7], [0, 13, 10, 11], [8, 0, 14, 15]])


def test_sequence_mask():
    lengths = paddle.to_tensor([[1, 0], [3, 2]])
    assert F.sequence_mask(lengths, 4, "float32").shape == [2, 2, 4]
    static = paddle.jit.to_static(lambda x: F.sequence_mask(x), full_graph=True)
    np.testing.assert_array_equal(static(lengths).numpy(), np.arange(3) < np.array([[1, 0], [3, 2]])[..., None])


@pytest.mark.parametrize(("kind", "norm"), [(2.0, 5.0), (1.0, 7.0), (float("inf"), 4.0)])
@pytest.mark.proves("nn.utils.clip_grad_norm_")
def test_clip_grad_norm(kind, norm):
    x, free = paddle.to_tensor([0.0, 0.0], stop_gradient=False), paddle.to_tensor([1.0], stop_gradient=False)
    x.grad = paddle.to_tensor([3.0, 4.0])
    assert float(utils.clip_grad_norm_([x, free], 1.0, kind)) == pytest.approx(norm)
    np.testing.assert_allclose(x.grad.numpy(), np.array([3.0, 4.0]) / norm, rtol=1e-5)
    assert free.grad is None


def test_clip_grad_norm_of_nothing_and_of_nan():
    x = paddle.to_tensor([0.0], stop_gradient=False)
    assert float(utils.clip_grad_norm_(x, 1.0)) == 0.0
    x.grad = paddle.to_tensor([float("nan")])
    with pytest.raises(RuntimeError, match="the norm of the gradients is nan"):
        utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)


@pytest.mark.proves("nn.utils.clip_grad_value_")
def test_clip_grad_value():
    x = paddle.to_tensor([0.0, 0.0], stop_gradient=False)
    x.grad = paddle.to_tensor([3.0, -0.5])
    utils.clip_grad_value_([x], 1.0)
    assert x.grad.tolist() == [1.0, -0.5]


@pytest.mark.proves("nn.utils.parameters_to_vector nn.utils.vector_to_parameters")
def test_parameters_as_a_vector_and_back():
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == [9]
    utils.vector_to_parameters(vector * 0 + 2, layer.parameters())
    assert layer.weight.tolist() == [[2.0] * 3] * 2
    with pytest.raises(ValueError, match="the vector has 8 elements, the parameters 9"):
        utils.vector_to_parameters(vector[:8], layer.parameters())


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.Pad2D([1, 2]), ValueError, "padding needs 4 numbers, not 2"),
        (lambda: nn.Pad2D(1)(paddle.ones([2, 3])), ValueError, "needs a tensor of 4 axes"),
        (lambda: nn.Pad2D(1, "wrap")(paddle.ones([1, 1, 2, 2])), ValueError, "mode must be one of"),
        (lambda: nn.PixelShuffle(0)(paddle.ones([1, 4, 2, 2])), ValueError, "must be a positive int, not 0"),
        (lambda: nn.PixelShuffle(2)(paddle.ones([1, 3, 2, 2])), ValueError, "3 channels .* do not divide by 4"),
        (lambda: nn.PixelUnshuffle(2)(paddle.ones([1, 3, 3, 2])), ValueError, "3 pixels .* do not divide by 2"),
        (lambda: nn.ChannelShuffle(2)(paddle.ones([3])), ValueError, "needs images, tensors of 4 axes"),
        (lambda: F.temporal_shift(paddle.ones([2, 4, 1, 1]), 2, 0.7), ValueError, "shift_ratio must be from 0 to 0.5"),
        (lambda: F.sequence_mask(paddle.ones([2])), TypeError, "the lengths must be integers, not float32"),
        (lambda: nn.PixelShuffle(), TypeError, "PixelShuffle: missing a required argument"),
    ],
)
def test_bad_arguments(act, error, text):
    with pytest.raises(error, match=text):
        act()
