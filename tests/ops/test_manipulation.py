"""Joining, splitting, axes of extent 1, and elements in other places, against NumPy; what is inferred and refused."""

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float32, float64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import ScalarType, TensorType
from dy2st.shapes import symbol

N, M = symbol("N"), symbol("M")


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


def infer(name, *types, **attributes):
    return lookup(name).infer(*types, **attributes)


def f64(*shape):
    return TensorType(float64, shape)


def test_concat_and_split_undo_each_other(rng):
    parts = [rng.normal(size=(2, n, 3)) for n in (1, 0, 4)]
    whole = compute("concat", *parts, axis=1)
    np.testing.assert_array_equal(whole, np.concatenate(parts, 1))
    back = compute("split", whole, 0, sections=(1, None, 4), axis=1)
    for part, again in zip(parts, back, strict=True):
        np.testing.assert_array_equal(part, again)


def test_concat_adds_symbolic_extents_and_takes_what_one_operand_knows():
    assert infer("concat", f64(N, 3), f64(M, 3), axis=0).shape == (N + M, 3)
    assert infer("concat", f64(2, N), f64(3, 5), axis=0).shape == (5, 5)
    assert infer("stack", f64(N, 5), f64(4, M), axis=1).shape == (4, 2, 5)


def test_split_takes_the_extents_that_scalars_are_known_to_have():
    types = infer("split", f64(N + 2, 3), ScalarType("int", N), ScalarType("int"), sections=(None, 2, None), axis=0)
    assert [t.shape for t in types] == [(N, 3), (2, 3), (None, 3)]


def test_stack_against_numpy(rng):
    parts = [rng.normal(size=(2, 3)) for _ in range(4)]
    for axis in range(3):
        np.testing.assert_array_equal(compute("stack", *parts, axis=axis), np.stack(parts, axis))


@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 3), ()])
def test_expand_dims_and_squeeze(rng, axes):
    x = rng.normal(size=(2, 3))
    wide = compute("expand_dims", x, axes=axes)
    np.testing.assert_array_equal(wide, np.expand_dims(x, axes))
    np.testing.assert_array_equal(compute("squeeze", wide, axes=axes), x)
    assert infer("squeeze", infer("expand_dims", f64(N, 3), axes=axes), axes=axes) == f64(N, 3)


def test_what_cannot_be_joined_split_or_squeezed_is_refused():
    with pytest.raises(ValueError, match=r"concat needs tensors of one shape but for axis 0, not \[2, 3\], \[2, 4\]"):
        infer("concat", f64(2, 3), f64(2, 4), axis=0)
    with pytest.raises(ValueError, match=r"concat needs tensors of one shape but for axis 0, not \[2, 3\], \[2, 4\]"):
        compute("concat", np.zeros((2, 3)), np.zeros((2, 4)), axis=0)
    with pytest.raises(ValueError, match=r"stack needs tensors of one shape, not \[2\], \[3\]"):
        infer("stack", f64(2), f64(3), axis=0)
    with pytest.raises(ValueError, match=r"stack needs tensors of one shape, not \[2\], \[3\]"):
        compute("stack", np.zeros(2), np.zeros(3), axis=0)
    with pytest.raises(TypeError, match="concat needs tensors of one dtype, not float64 and float32"):
        infer("concat", f64(2), TensorType(float32, (2,)), axis=0)
    with pytest.raises(ValueError, match="concat needs at least one tensor"):
        infer("concat", axis=0)
    with pytest.raises(ValueError, match=r"sections \[2, 2\] do not add up to axis 0, whose extent is 5"):
        infer("split", f64(5), sections=(2, 2), axis=0)
    with pytest.raises(ValueError, match=r"do not add up to axis 0, whose extent is 5"):
        compute("split", np.zeros(5), 3, sections=(3, None), axis=0)
    with pytest.raises(ValueError, match=r"cannot squeeze axis 1 of a tensor of shape \[1, 3\]: its extent is not 1"):
        infer("squeeze", f64(1, 3), axes=(0, 1))
    with pytest.raises(ValueError, match=r"cannot squeeze axis 1 of a tensor of shape \[1, 3\]"):
        compute("squeeze", np.zeros((1, 3)), axes=(1,))
    with pytest.raises(ValueError, match=r"axes \[0, 4\] do not name 2 different axes of a tensor of rank 4"):
        infer("expand_dims", f64(2, 3), axes=(0, 4))


def test_flip_and_roll_against_numpy(rng):
    x = rng.normal(size=(3, 4))
    np.testing.assert_array_equal(compute("flip", x, axes=(1,)), x[:, ::-1])
    np.testing.assert_array_equal(compute("roll", x, -2, shifts=(5, None), axes=(0, 1)), np.roll(x, (5, -2), (0, 1)))
    with pytest.raises(ValueError, match="roll needs as many shifts as axes, not 1 and 2"):
        infer("roll", f64(2, 3), shifts=(1,), axes=(0, 1))


def test_pad_against_numpy(rng):
    x = rng.normal(size=(2, 3))
    got = compute("pad", x, np.array(7.0), 2, low=(1, None), high=(0, 3))
    np.testing.assert_array_equal(got, np.pad(x, ((1, 0), (2, 3)), constant_values=7))
    assert infer("pad", f64(N, 3), f64(), ScalarType("int", M), low=(1, None), high=(0, 3)).shape == (N + 1, M + 6)


def test_pad_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match=r"pad widths must not be negative, not \[-1\] and \[0\]"):
        infer("pad", f64(3), f64(), low=(-1,), high=(0,))
    with pytest.raises(ValueError, match=r"pad widths must not be negative"):
        compute("pad", np.zeros(3), np.zeros(()), -1, low=(None,), high=(0,))
    with pytest.raises(ValueError, match="pad needs 2 widths before and after, not 1 and 2"):
        infer("pad", f64(3, 2), f64(), low=(1,), high=(0, 0))
    with pytest.raises(TypeError, match="pad needs a value of the tensor's dtype, not float32 for float64"):
        infer("pad", f64(3), TensorType(float32, ()), low=(1,), high=(0,))


@pytest.mark.parametrize("diagonal", [-2, 0, 1, 9])
def test_triangles_against_numpy(rng, diagonal):
    x = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(compute("tril", x, diagonal=diagonal), np.tril(x, diagonal))
    np.testing.assert_array_equal(compute("triu", x, diagonal=diagonal), np.triu(x, diagonal))


def test_a_triangle_of_a_vector_is_refused():
    with pytest.raises(ValueError, match="tril needs a matrix, not a tensor of rank 1"):
        infer("tril", f64(3), diagonal=0)


@pytest.mark.parametrize("offset", [-3, -1, 0, 2, 5])
def test_diagonal_and_its_embedding(rng, offset):
    x = rng.normal(size=(3, 2, 4))
    d = compute("diagonal", x, offset=offset, axes=(0, 2))
    np.testing.assert_array_equal(d, np.diagonal(x, offset, 0, 2))
    assert infer("diagonal", f64(3, 2, 4), offset=offset, axes=(0, 2)).shape == d.shape
    back = compute("diagonal_embed", d, 4, shape=(3, 2, None), offset=offset, axes=(0, 2))
    np.testing.assert_array_equal(np.diagonal(back, offset, 0, 2), d)
    assert np.count_nonzero(back) == d.size
    assert infer("diagonal", f64(N, N), offset=0, axes=(0, 1)).shape == (N,)


def test_a_diagonal_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"diagonal 1 of a tensor of shape \[3, 3\] has 2 elements, not 3"):
        compute("diagonal_embed", np.zeros(3), shape=(3, 3), offset=1, axes=(0, 1))
