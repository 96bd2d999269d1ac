"""Gradients of complex numbers are Paddle's (the conjugate of the derivative), and what is refused."""

import numpy as np
import pytest

import dy2st as paddle

Z = np.array([1 + 2j, 3 - 1j])
SCALARS = {  # the gradients are those that Paddle 3.3 gave
    "square of the size": (lambda z: (z * z).abs().sum(), [2 + 4j, 6 - 2j]),
    "real part": (lambda z: paddle.real(z * z).sum(), [2 - 4j, 6 + 2j]),
    "imaginary part": (lambda z: paddle.imag(z * z).sum(), [4 + 2j, -2 + 6j]),
    "power of a transform": (lambda z: (paddle.fft.fft(z).abs() ** 2).sum(), [4 + 8j, 12 - 4j]),
    "conjugate": (lambda z: (paddle.conj(z) * z).real().sum(), [2 + 4j, 6 - 2j]),
    "angle": (lambda z: paddle.angle(z).sum(), [-0.4 + 0.2j, 0.1 + 0.3j]),
    "product of parts": (lambda z: paddle.as_real(z * z).prod(), [192 + 1056j, 624 - 432j]),
    "holomorphic": (lambda z: (z * z).sum(), [2 - 4j, 6 + 2j]),
}  # fmt: skip


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("name", SCALARS)
def test_gradient_is_paddles(name, static):
    function, want = SCALARS[name]
    z = paddle.to_tensor(Z, stop_gradient=False)
    (paddle.jit.to_static(function, full_graph=True) if static else function)(z).backward()
    np.testing.assert_allclose(z.grad.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("name", SCALARS)
def test_grad_returns_what_backward_sums(name):
    function, want = SCALARS[name]
    z = paddle.to_tensor(Z, stop_gradient=False)
    np.testing.assert_allclose(paddle.grad(function(z), z)[0].numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(paddle.grad(function(z), z, create_graph=True)[0].numpy(), want, rtol=1e-12)


def test_gradients_pass_through_transforms_of_real_numbers():
    x = paddle.to_tensor(np.array([1.0, 2.0, 4.0]), stop_gradient=False)
    (paddle.fft.rfft(x).abs() ** 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [131.12549213, 143.03137303, 166.84313483])
    x.clear_grad()
    (paddle.fft.irfft(paddle.complex(x, x * x), n=5) ** 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [70.2, -106.56, -120.0])


@pytest.mark.parametrize("part", ["real", "imag"])
def test_the_slope_of_a_part_is_a_difference(part):
    function = lambda z: getattr(paddle, part)(paddle.exp(z) * z).sum()
    z = paddle.to_tensor(Z, stop_gradient=False)
    got = paddle.grad(function(z), z)[0].numpy()
    for i, step in ((0, 1e-6), (1, 1e-6j)):
        move = np.eye(2)[i] * step
        change = (function(paddle.to_tensor(Z + move)) - function(paddle.to_tensor(Z - move))).item() / 2e-6
        assert abs(change - (got[i].real if step.imag == 0 else got[i].imag)) < 1e-6


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: paddle.as_complex(paddle.zeros([3])), ValueError, r"as_complex needs a last axis of 2 parts, not \[3\]"),
    (lambda: paddle.as_real(paddle.zeros([3])), TypeError, "as_real needs complex numbers, not float32"),
    (lambda: paddle.fft.rfft(paddle.to_tensor(Z)), TypeError, "rfft needs real numbers, not complex128"),
    (lambda: paddle.fft.fft(paddle.zeros([3]), n=0), ValueError, "a length must be positive, not 0"),
    (lambda: paddle.fft.fft(paddle.zeros([3]), norm="x"), ValueError, "norm is 'x', not 'backward', 'forward' or"),
    (lambda: paddle.signal.frame(paddle.ones([4]), 2, 1, 1), ValueError, "frame: axis must be 0 or -1, not 1"),
    (lambda: paddle.signal.frame(paddle.ones([4]), 2, 0), ValueError, "frame: hop_length must be positive, not 0"),
    (lambda: paddle.signal.stft(paddle.ones([4]), 2, 0), ValueError, "a window of 2 and a hop of 0 do not go with"),
    (lambda: paddle.signal.stft(paddle.ones([4]), 4, window=paddle.ones([2])), ValueError, r"shape \[2\], not \[4\]"),
    (lambda: paddle.signal.stft(paddle.ones([2, 2, 8]), 4), ValueError, r"needs signals \[length\] or \[batch, length"),
    (lambda: paddle.signal.stft(paddle.to_tensor(Z), 4), ValueError, "complex signals have no half"),
    (lambda: paddle.signal.istft(paddle.ones([3]), 4), ValueError, r"istft needs \[frequencies, frames\]"),
    (lambda: paddle.signal.istft(paddle.ones([3, 2]), 4, return_complex=True), ValueError, "needs onesided=False"),
    (lambda: paddle.fft.fftn(paddle.zeros([3, 2]), [2], [0, 1]), ValueError, "1 lengths for 2 axes"),
    (lambda: paddle.fft.fftn(paddle.to_tensor(1.0)), ValueError, r"no axis to transform in a tensor of shape \[\]"),
    (lambda: paddle.fft.fft(paddle.zeros([0])), ValueError, "axis 0 of .* is empty"),
])  # fmt: skip
def test_wrong_use_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_the_conjugate_of_what_is_not_complex_is_what_it_is():
    for x in (np.array([True, False]), np.array([1, -2], "int8"), np.array([1.5], "float32")):
        made = paddle.conj(paddle.to_tensor(x)).numpy()
        assert made.dtype == x.dtype
        np.testing.assert_array_equal(made, x)
