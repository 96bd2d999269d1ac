"""Weights made anew at each call: weight_norm and spectral_norm against their formulas, in eager mode and a Program."""

import numpy as np
import pytest

import dy2st as paddle

norms = paddle.nn.utils


def linear():
    layer = paddle.nn.Linear(4, 3)
    layer.weight.set_value(np.arange(12.0).reshape(4, 3).astype("float32") - 5)
    return layer


@pytest.mark.proves("nn.utils.weight_norm")
@pytest.mark.parametrize(("dim", "axes", "shape"), [(0, 1, [4]), (1, 0, [3]), (-1, (0, 1), [1]), (None, (0, 1), [1])])
def test_weight_norm_gives_the_same_weight_from_a_norm_and_a_direction(dim, axes, shape):
    layer = linear()
    weight = layer.weight.numpy()
    assert norms.weight_norm(layer, dim=dim) is layer
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    np.testing.assert_allclose(layer.weight_g.numpy(), np.linalg.norm(weight, axis=axes).reshape(shape), rtol=1e-6)
    np.testing.assert_allclose(layer.weight.numpy(), weight, rtol=1e-6)
    layer.weight_g.set_value(layer.weight_g.numpy() * 2)
    np.testing.assert_allclose(layer(paddle.eye(4)).numpy(), weight * 2 + layer.bias.numpy(), rtol=1e-6)


def test_weight_norm_of_a_convolution_keeps_a_norm_for_each_kernel():
    layer = paddle.nn.Conv2D(2, 3, 2)
    weight = layer.weight.numpy()
    norms.weight_norm(layer)
    np.testing.assert_allclose(layer.weight_g.numpy(), np.sqrt((weight**2).sum((1, 2, 3))), rtol=1e-6)
    np.testing.assert_allclose(layer.weight.numpy(), weight, rtol=1e-5)


@pytest.mark.parametrize("make", [norms.weight_norm, norms.spectral_norm])
def test_gradients_in_a_program_are_those_of_eager_mode(make):
    found = []
    for static in (False, True):
        paddle.seed(3)
        layer = make(linear())
        call = paddle.jit.to_static(layer, full_graph=True) if static else layer
        call(paddle.ones([2, 4])).square().sum().backward()
        found.append([p.grad.numpy() for p in layer.parameters() if p.grad is not None])
    assert len(found[0]) == len(found[1]) > 1
    for eager, static in zip(*found):
        np.testing.assert_allclose(eager, static, rtol=1e-5)


@pytest.mark.proves("nn.utils.remove_weight_norm")
def test_a_removed_norm_leaves_a_parameter():
    layer = norms.weight_norm(linear())
    layer.weight_v.set_value(layer.weight_v.numpy() + 1)
    want = layer(paddle.eye(4)).numpy()
    norms.remove_weight_norm(layer)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
    np.testing.assert_allclose(layer(paddle.eye(4)).numpy(), want)


@pytest.mark.proves("nn.utils.spectral_norm")
def test_spectral_norm_divides_by_the_largest_singular_value():
    layer = linear()
    weight = layer.weight.numpy()
    norms.spectral_norm(layer, n_power_iterations=50)
    layer(paddle.eye(4))
    np.testing.assert_allclose(layer.weight.numpy(), weight / np.linalg.svd(weight)[1][0], rtol=1e-5)
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert (layer.weight_u.shape, layer.weight_v.shape) == ([3], [4])


def test_spectral_norm_does_not_iterate_in_evaluation():
    layer = norms.spectral_norm(linear())
    layer.eval()
    before = layer.weight_u.numpy().copy()
    layer(paddle.eye(4))
    np.testing.assert_array_equal(layer.weight_u.numpy(), before)


@pytest.mark.proves("nn.SpectralNorm")
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_layer_divides_a_weight(dim):
    weight = np.random.normal(size=(3, 4, 2)).astype("float32")
    layer = paddle.nn.SpectralNorm(weight.shape, dim=dim, power_iters=100)
    largest = np.linalg.svd(np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1))[1][0]
    np.testing.assert_allclose(layer(paddle.to_tensor(weight)).numpy(), weight / largest, rtol=1e-4)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: norms.weight_norm(norms.weight_norm(linear())), RuntimeError, "'weight' of Linear has a norm already"),
    (lambda: norms.weight_norm(linear(), "w"), ValueError, "Linear has no parameter 'w'"),
    (lambda: norms.weight_norm(linear(), dim=2), ValueError, r"dim is 2, the parameter has shape \[4, 3\]"),
    (lambda: norms.remove_weight_norm(linear()), ValueError, "'weight' of Linear has no weight norm"),
    (lambda: norms.spectral_norm(linear(), n_power_iterations=0), ValueError, "must be positive, not 0"),
    (lambda: paddle.nn.SpectralNorm([0, 2]), ValueError, r"no extent of the weight may be 0, not \[0, 2\]"),
])  # fmt: skip
def test_wrong_use_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
