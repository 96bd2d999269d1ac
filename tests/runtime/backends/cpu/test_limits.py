"""What does not fit: more elements than memory has addresses, recursion deeper than the stack."""

import threading

import numpy as np
import pytest

import dy2st as paddle


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def static(f):
    return paddle.jit.to_static(f, full_graph=True)


def test_a_number_of_elements_that_wraps_around():
    total = static(lambda n: paddle.zeros([n, n]).sum())
    assert total(paddle.to_tensor(3)) == 0
    with pytest.raises(ValueError, match="array is too big"):
        total(paddle.to_tensor(2**32))


def test_an_allocation_whose_size_wraps_around():
    make = static(lambda n: paddle.zeros([n, n]))
    assert make(paddle.to_tensor(2)).shape == [2, 2]
    with pytest.raises(ValueError, match="array is too big"):
        make(paddle.to_tensor(2**32))


def test_a_reshape_whose_product_wraps_around():
    shaped = static(lambda x, n: x.reshape([n, n]) + 1)
    assert shaped(paddle.zeros([4]), paddle.to_tensor(2)).shape == [2, 2]
    with pytest.raises(ValueError, match="cannot reshape a tensor of shape"):
        shaped(paddle.zeros([0]), paddle.to_tensor(2**32))


def deep(x, n):
    if n <= 0:
        return x
    parts = paddle.stack([x * 2, paddle.tanh(x) + x, x]).sum(axis=0)
    return deep(parts * 0.1 + paddle.tanh(x @ x), n - 1) * 0.99


@pytest.mark.parametrize("size", [192, 256, 512, 1024])
@pytest.mark.parametrize("depth", [50, 880, 3000])
def test_recursion_on_a_small_stack(depth, size):
    function, found = static(deep), []
    x = paddle.ones([4])

    def work():
        try:
            for _ in range(3):
                found.append(function(x, paddle.to_tensor(depth)).numpy())
        except RecursionError as error:
            found.append(error)

    old = threading.stack_size(size * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    if depth == 50:
        want = deep(x, paddle.to_tensor(depth)).numpy()
        for one in found:
            np.testing.assert_allclose(one, want, rtol=1e-4)
    elif depth == 3000 or isinstance(found[0], RecursionError):
        assert "called too deeply" in str(found[0])
