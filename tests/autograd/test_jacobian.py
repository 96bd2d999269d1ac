"""autograd.jacobian and autograd.hessian of tensors that were computed already."""

import numpy as np
import pytest

import dy2st as paddle

V = np.array([0.5, -1.0])


def t(value):
    return paddle.to_tensor(np.asarray(value, "float64"), stop_gradient=False)


@pytest.mark.proves("autograd.jacobian")
def test_jacobian_of_vectors():
    x = t(V)
    np.testing.assert_allclose(paddle.autograd.jacobian(x**3, x)[:].numpy(), np.diag(3 * V**2))


def test_axes_of_scalars_are_left_out():
    x, s = t(V), t(2.0)
    assert paddle.autograd.jacobian((x * s).sum(), x).shape == [2]
    assert paddle.autograd.jacobian((x * s).sum(), x)[1].item() == 2.0
    assert paddle.autograd.jacobian(x * s, s)[:].tolist() == V.tolist()
    assert paddle.autograd.jacobian(s * s, s)[...].item() == 4.0


def test_sequences_give_tuples():
    x, z = t(V), t(V)
    ((a, b), (c, d)) = paddle.autograd.jacobian([x * z, x], [x, z])
    np.testing.assert_allclose(b.numpy(), np.diag(V))
    assert d.numpy().tolist() == [[0.0, 0.0]] * 2
    assert a.shape == c.shape == [2, 2]
    assert isinstance(paddle.autograd.jacobian([x * z], x), tuple)


def test_batched_jacobian(rng):
    value = rng.normal(size=(3, 2))
    x = t(value)
    got = paddle.autograd.jacobian(x.sum(axis=1) ** 2, x, batch_axis=0)
    assert got.shape == [3, 2]
    np.testing.assert_allclose(got[:].numpy(), 2 * value.sum(1, keepdims=True) * np.ones((3, 2)))


@pytest.mark.proves("autograd.hessian")
def test_hessian_of_a_scalar():
    x = t(V)
    np.testing.assert_allclose(paddle.autograd.hessian((x**3).sum(), x)[:].numpy(), np.diag(6 * V))


def test_hessian_blocks_of_two_inputs():
    x, z = t(V), t(V)
    blocks = paddle.autograd.hessian((x * x * z).sum(), [x, z])
    np.testing.assert_allclose(blocks[0][1].numpy(), np.diag(2 * V))
    assert blocks[1][1].numpy().tolist() == [[0.0, 0.0]] * 2


def test_batched_hessian(rng):
    value = rng.normal(size=(3, 2))
    x = t(value)
    got = paddle.autograd.hessian((x**3).sum(axis=1), x, batch_axis=0)
    np.testing.assert_allclose(got.numpy(), [np.diag(6 * row) for row in value])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: paddle.autograd.jacobian(x, x, batch_axis=1), ValueError, "batch_axis must be None or 0, not 1"),
        (
            lambda x: paddle.autograd.jacobian(x.unsqueeze(0), x),
            ValueError,
            "must have 0 or 1 axes, not 2; reshape them",
        ),
        (lambda x: paddle.autograd.jacobian(3, x), TypeError, "jacobian: ys must be a Tensor or a sequence"),
        (lambda x: paddle.autograd.hessian(x, x), ValueError, "hessian: ys must have one element, not"),
        (lambda x: paddle.autograd.hessian([x], x), TypeError, "hessian: ys must be a Tensor, not list"),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call(t(V))


def test_operators_take_the_whole_matrix():
    x = t([1.0, 2.0])
    jacobian, dense = paddle.autograd.jacobian(x**3, x), np.diag([3.0, 12.0])
    v = paddle.to_tensor([1.0, -1.0], dtype="float64")
    for found, wanted in (
        (jacobian * 2, dense * 2), (2 - jacobian, 2 - dense), (jacobian @ jacobian, dense @ dense),
        (jacobian @ v, dense @ v.numpy()), (v @ jacobian, v.numpy() @ dense), (-jacobian / 2, -dense / 2),
        (abs(jacobian), dense), (jacobian**2, dense**2), (jacobian == jacobian, dense == dense),
        (jacobian > 1, dense > 1), (jacobian.T, dense.T), (jacobian.sum(), dense.sum()),
        (1 / (jacobian + 1), 1 / (dense + 1)),
        (np.ones((2, 2)) @ jacobian, np.ones((2, 2)) @ dense),
    ):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), wanted)
    assert (len(jacobian), jacobian.dtype, np.asarray(jacobian).tolist()) == (2, paddle.float64, dense.tolist())
    assert isinstance(hash(jacobian), int)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        jacobian.nothing
