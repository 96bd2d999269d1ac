"""Functions on a Python list whose length only the run tells: eager and static agree, values and gradients."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import NeedsPythonValue


def collected(x, n):
    out = []
    for i in range(n):
        x = x * 2
        out.append(x)
    return out


def stack_rows(x, n):
    return paddle.stack(collected(x, n))


def stack_columns(x, n):
    return paddle.stack(collected(x, n), axis=1)


def stack_last(x, n):
    return paddle.stack(collected(x, n), axis=-1)


def concat_rows(x, n):
    return paddle.concat(collected(x, n))


def concat_columns(x, n):
    return paddle.concat(collected(x, n), axis=-1)


def add_all(x, n):
    return paddle.add_n(collected(x, n))


def to_tensor_of_tensors(x, n):
    return paddle.to_tensor(collected(x, n))


def prefixes(x, n):
    parts = []
    for i in range(n):
        parts.append(x[: i + 1] * 3)
    return paddle.concat(parts)


def numbers(x, n):
    found = []
    for i in range(n):
        found.append(i * 2)
    return paddle.to_tensor(found)


def floats(x, n):
    found = []
    for i in range(n):
        found.append(i * 0.5)
    return paddle.to_tensor(found, dtype="float64")


def picked(x, n):
    places = []
    for i in range(n):
        places.append(i % 2)
    return x[places]


FUNCTIONS = [stack_rows, stack_columns, stack_last, concat_rows, concat_columns, add_all, to_tensor_of_tensors,
             prefixes, numbers, floats, picked]  # fmt: skip


def matrix(dtype="float64"):
    return paddle.to_tensor(np.arange(1.0, 7.0).reshape(2, 3).astype(dtype), stop_gradient=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_static_values_are_those_of_eager(function, dtype):
    static = paddle.jit.to_static(function, full_graph=True)
    for n in (2, 1, 4) if function is not prefixes else (2, 1):
        got, want = static(matrix(dtype), paddle.to_tensor(n)), function(matrix(dtype), n)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want.numpy())
        assert got.stop_gradient == want.stop_gradient
    assert len(static.program_cache) == 1


@pytest.mark.parametrize(
    "function", [stack_rows, stack_columns, concat_rows, concat_columns, add_all, prefixes, picked]
)
def test_static_gradients_are_those_of_eager(function):
    static = paddle.jit.to_static(function, full_graph=True)
    for n in (2, 1):
        gradients = []
        for f, count in ((function, n), (static, paddle.to_tensor(n))):
            x = matrix()
            out = f(x, count)
            (first,) = paddle.grad((out * out * out).sum(), x, create_graph=True)
            (second,) = paddle.grad((first * first).sum(), x)
            gradients.append((first.numpy(), second.numpy()))
        for got, want in zip(*reversed(gradients), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(("function", "text"), [
    (stack_rows, r"stack\(\) needs at least one tensor"),
    (concat_rows, r"concat\(\) needs at least one tensor"),
])  # fmt: skip
def test_an_empty_list_is_refused_when_the_program_runs(function, text):
    static = paddle.jit.to_static(function, full_graph=True)
    assert static(matrix(), paddle.to_tensor(1)).shape[-1] == 3
    with pytest.raises(ValueError, match=text):
        static(matrix(), paddle.to_tensor(0))


def test_numbers_of_an_empty_list_are_an_empty_tensor():
    static = paddle.jit.to_static(numbers, full_graph=True)
    assert static(matrix(), paddle.to_tensor(0)).shape == [0]


def test_tensors_of_different_shapes_are_not_stacked():
    def ragged(x, n):
        parts = []
        for i in range(n):
            parts.append(x[: i + 1])
        return paddle.stack(parts)

    with pytest.raises(ValueError, match="stack needs tensors of one shape, the list has"):
        paddle.jit.to_static(ragged, full_graph=True)(matrix(), paddle.to_tensor(2))


def test_tensors_of_different_other_extents_are_not_joined():
    def ragged(x, n):
        parts = []
        for i in range(n):
            parts.append(x[: i + 1])
        return paddle.concat(parts, axis=1)

    with pytest.raises(ValueError, match="concat along axis 1 needs tensors of equal other extents, the list has"):
        paddle.jit.to_static(ragged, full_graph=True)(matrix(), paddle.to_tensor(2))


def test_tensors_without_an_axis_are_not_joined():
    def scalars(x, n):
        parts = []
        for i in range(n):
            parts.append(x.sum() + i)
        return paddle.concat(parts)

    with pytest.raises(ValueError, match="0-D tensors have no axis to be joined along; use stack"):
        paddle.jit.to_static(scalars, full_graph=True)(matrix(), paddle.to_tensor(2))


def test_a_list_from_without_gradient_gives_a_tensor_without():
    def quiet(x, n):
        with paddle.no_grad():
            return paddle.stack(collected(x, n))

    static = paddle.jit.to_static(quiet, full_graph=True)
    assert static(matrix(), paddle.to_tensor(2)).stop_gradient


def test_a_list_of_several_things_is_not_stacked():
    def mixed(x, n):
        parts = []
        for i in range(n):
            parts.append((x, i))
        return paddle.stack(parts)

    with pytest.raises(NeedsPythonValue, match=r"stack\(\) of a list whose elements are not all tensors of one dtype"):
        paddle.jit.to_static(mixed, full_graph=True)(matrix(), paddle.to_tensor(2))


def test_python_does_not_run_through_a_list_of_unknown_length():
    def spread(x, n):
        return paddle.meshgrid(collected(x[0], n))[0]

    with pytest.raises(NeedsPythonValue, match="only the run will tell how long this list is"):
        paddle.jit.to_static(spread, full_graph=True)(matrix(), paddle.to_tensor(2))
