"""`flip`, `roll`, `pad`, triangles and diagonals as native code, of tensors with and without gaps or elements."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import same_natively

SHAPES = [(3, 4, 5), (1, 7, 2), (2, 0, 3), (4, 1, 17)]


def tensor(shape, dtype="float32"):
    return (np.arange(np.prod(shape)) % 97).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axes", [[0], [2], [0, 1], [-1, -2, -3]])
def test_flip(shape, axes):
    same_natively(lambda x: (paddle.flip(x, axes), paddle.flip(x, axes) * 2 + x, x.flip(axes).T[0]), tensor(shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("shifts", "axes"), [(1, 0), (-2, 2), ([3, -1], [0, 1]), ([5, 7, -9], [1, 2, 1])])
def test_roll(shape, shifts, axes):
    same_natively(lambda x: paddle.roll(x, shifts, axes), tensor(shape))
    same_natively(lambda x: paddle.roll(x.transpose([2, 0, 1]), shifts, axes), tensor(shape, "int16"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("diagonal", [-9, -1, 0, 2, 9])
@pytest.mark.parametrize("dtype", ["float64", "bool"])
def test_triangles(shape, diagonal, dtype):
    same_natively(lambda x: (paddle.tril(x, diagonal), paddle.triu(x, diagonal)), tensor(shape, dtype))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("offset", [-9, -1, 0, 2])
@pytest.mark.parametrize("axes", [(0, 1), (2, 0)])
def test_diagonals(shape, offset, axes):
    same_natively(lambda x: paddle.diagonal(x, offset, *axes), tensor(shape))
    same_natively(lambda x: paddle.diag_embed(x, offset), tensor(shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("widths", [[0, 0, 0, 0, 1, 2], [3, 1, 0, 0, 0, 0], [0, 1, 2, 0, 3, 5]])
@pytest.mark.parametrize("value", [0.0, 1.5])
def test_padding_with_a_number(shape, widths, value):
    same_natively(lambda x: paddle.nn.functional.pad(x, widths, value=value), tensor(shape))


def test_a_negative_width_is_the_error_of_the_op():
    def f(x, n):
        return paddle.nn.functional.pad(x, [int(n), 0], value=1.0)

    static = paddle.jit.to_static(f, full_graph=True)
    x = np.ones(3, "float32")
    static(paddle.to_tensor(x), paddle.to_tensor(2))
    native = NativePlan(static.concrete_program.main_program)
    np.testing.assert_array_equal(native.run([x, np.array(2)])[0], np.ones(5))
    with pytest.raises(ValueError, match="pad widths must not be negative"):
        native.run([x, np.array(-1)])


FAR = [-(1 << 31), 1 - (1 << 31), (1 << 31) - 1, 1 << 31]


@pytest.mark.parametrize("offset", FAR)
def test_a_diagonal_that_is_far_off_is_empty(offset):
    """NumPy's own `diagonal` returns memory that is not the array's for an offset of -(2 ** 31)."""
    x = tensor((4, 1, 4))
    made = paddle.diagonal(paddle.to_tensor(x), offset, 0, 2)
    assert made.shape == [1, 0]
    matrix = paddle.to_tensor(x[:, 0])
    kept = (paddle.tril, paddle.triu) if offset > 0 else (paddle.triu, paddle.tril)
    np.testing.assert_array_equal(kept[0](matrix, offset), matrix)
    assert not kept[1](matrix, offset).any()
    same_natively(lambda x: paddle.diagonal(x, offset, 0, 2), x)
    same_natively(lambda x: (paddle.tril(x, offset), paddle.triu(x, offset), paddle.roll(x, offset, 1)), x)
