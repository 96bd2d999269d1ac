"""What stands around small eager ops is left out where it changes nothing: values, views and memory are as before."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ops.shape import philox

T = paddle.to_tensor
CALLS = 600
"""More than it takes until native code runs a call that is made often."""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
@pytest.mark.parametrize("shapes", [((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((0,), (0, 2)), ((2, 0), (0,))])
def test_products_with_vectors(dtype, shapes, rng):
    a, b = ((rng.normal(size=shape) * 4).astype(dtype) for shape in shapes)
    with paddle.no_grad():
        found = T(a) @ T(b)
    x, y = T(a), T(b)
    x.stop_gradient = y.stop_gradient = dtype == "int64"
    recorded = x @ y
    np.testing.assert_array_equal(found.numpy(), recorded.numpy())
    assert found.shape == recorded.shape
    assert found.dtype is recorded.dtype
    np.testing.assert_allclose(found.numpy(), np.matmul(a, b), rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-6)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_products_with_vectors_transpose_the_matrix_alone(left, right, rng):
    square, vector = rng.normal(size=(3, 3)), rng.normal(size=3)
    first = paddle.matmul(T(vector), T(square), transpose_x=left, transpose_y=right)
    second = paddle.matmul(T(square), T(vector), transpose_x=left, transpose_y=right)
    np.testing.assert_allclose(first.numpy(), vector @ (square.T if right else square))
    np.testing.assert_allclose(second.numpy(), (square.T if left else square) @ vector)


def test_products_with_vectors_are_the_same_at_each_call(rng):
    x, w = T(rng.normal(size=5).astype("float32")), T(rng.normal(size=(5, 7)).astype("float32"))
    row = x.unsqueeze(0)
    for _ in range(CALLS):
        np.testing.assert_array_equal((x @ w).numpy(), (row @ w).numpy()[0])


def test_a_product_with_a_vector_has_memory_of_its_own():
    x, w = T([1.0, 2.0]), T([[1.0, 0.0], [0.0, 1.0]])
    made = x @ w
    made[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    assert made.tolist() == [5.0, 2.0]


def test_vectors_that_do_not_fit_are_named_by_their_shapes():
    with pytest.raises(ValueError, match=r"the inner extents differ: \[2\] and \[3, 4\] \(2 against 3\)"):
        paddle.ones([2]) @ paddle.ones([3, 4])
    with pytest.raises(ValueError, match=r"rank 1 or more"):
        paddle.matmul(T(1.0), paddle.ones([3]))


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3, 2**64 - 1])
def test_few_random_words_are_those_of_many(seed):
    many = philox.words(np, seed, 5, 400)
    for first in range(12):
        for count in range(26):
            found = philox.words(np, seed, 5, count, first)
            assert found.dtype == np.uint32
            np.testing.assert_array_equal(found, many[first : first + count])
    far = philox.words(np, seed, 2**35 + 1, 100, 4 * (2**33))
    np.testing.assert_array_equal(philox.words(np, seed, 2**35 + 1, 9, 4 * (2**33)), far[:9])


@pytest.mark.parametrize("draw", [paddle.randn, paddle.rand, lambda shape: paddle.randint(0, 1000, shape)])
def test_few_numbers_of_a_seed_are_the_first_of_many(draw):
    paddle.seed(3)
    many = draw([400]).numpy()
    for count in (1, 2, 3, 8, 9):
        paddle.seed(3)
        np.testing.assert_array_equal(draw([count]).numpy(), many[:count])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int32", "int64", "bool"])
@pytest.mark.parametrize("exponent", [2, 2.0, 0.5])
def test_squares_and_roots_by_the_power_operator(dtype, exponent):
    array = np.array([0, 1, 3]).astype(dtype)
    found = T(array) ** exponent
    wanted = T(array) ** T(np.array(exponent)) if dtype == "float64" else None
    by_name = paddle.square if exponent == 2 else paddle.sqrt
    if found.dtype.kind in "fc" and T(array).dtype.kind in "fc":
        assert found.dtype is T(array).dtype
        np.testing.assert_array_equal(found.numpy(), by_name(T(array)).numpy())
    exact = array.astype("complex64" if dtype == "complex64" else "float64") ** exponent
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-3)
    if wanted is not None:
        np.testing.assert_allclose(found.numpy(), wanted.numpy())


def test_numbers_beside_tensors_are_told_apart():
    x = T([1.0, -1.0])
    for _ in range(3):
        assert str((x * 0.0).tolist()) == "[0.0, -0.0]"
        assert str((x * -0.0).tolist()) == "[-0.0, 0.0]"
        assert (x * 1).dtype is (x * 1.0).dtype is paddle.float32
        assert (T([1, 2]) * 2).dtype is paddle.int64
        assert (T([1, 2], "int32") * 2).dtype is paddle.int32
        assert (T([1, 2]) * 2.0).dtype is paddle.float32
        assert (T([1.0], "float64") * 2).dtype is paddle.float64


def test_what_was_made_of_a_number_is_written_alone():
    x = T([1.0], stop_gradient=False)
    for _ in range(3):
        y = 3.0 - x * 0.5
        y *= 2.0
        y.sum().backward()
        assert y.tolist() == [5.0]
        assert x.grad.tolist() == [-1.0]
        x.clear_grad()
    assert T(2.0).item() + (T(0.0) + 3.0).item() == 5.0


def test_many_numbers_beside_a_tensor():
    x = T([1.0])
    for i in range(1, 700):
        assert (x * float(i)).item() == i
        assert (x + i).item() == 1 + i


def test_views_of_views_reach_the_memory():
    x = paddle.zeros([2, 3, 4])
    for view in (
        x.unsqueeze(0)[0],
        x.flatten(1).reshape([2, 3, 4]),
        x.detach().detach(),
        x[0:2].transpose([2, 1, 0]).T,
    ):
        view[0, 0, 0] += 1.0
        assert view[0, 0, 0].item() == x[0, 0, 0].item()
    assert x.sum().item() == 4.0
    halves = x[0], x[1]
    halves[1][2] = 7.0
    assert halves[0].sum().item() == 4.0
    apart = x.transpose([2, 0, 1]).reshape([-1])  # a copy
    apart[0] = 100.0
    assert x[0, 0, 0].item() == 4.0


def test_gradients_flow_through_views_that_were_written():
    x = T(np.ones([2, 3], "float32"), stop_gradient=False)
    y = x * 2.0
    view = y.unsqueeze(0)[0][1]
    view.scale_(3.0)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2, 2], [6, 6, 6]])


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_extremes_of_large_arrays_are_numpys_at_each_call(name, axis, rng):
    array = rng.normal(size=(300, 200)).astype("float32")
    x, wanted = T(array), getattr(np, name)(array, axis=axis)
    for _ in range(4):
        np.testing.assert_array_equal(getattr(paddle, name)(x, axis).numpy(), wanted)


def test_sums_of_large_arrays_have_the_same_bits_until_they_are_called_often(rng):
    array = rng.normal(size=(300, 200)).astype("float32")
    x, exact = T(array), array.astype("float64").sum(0)
    first = x.sum(0).numpy()
    for call in range(CALLS):
        found = x.sum(0).numpy()
        if call < 200:
            np.testing.assert_array_equal(found, first)
        np.testing.assert_allclose(found, exact, atol=1e-4)
    for call in range(3):
        assert x.mean().item() == pytest.approx(array.astype("float64").mean(), abs=1e-6), call
