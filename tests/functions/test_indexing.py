"""Every index form, read and written, against NumPy; views; gradients; errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dy2st as paddle
from dy2st.ir.builder import Builder
from dy2st.ir.context import replaced
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.tracer.recording.recorder import Recorder
from dy2st.shapes import symbol
from tests.shares import examples

SHAPE = (4, 3, 2)
BASE = np.arange(24, dtype=np.float32).reshape(SHAPE)
ROWS, COLUMNS = np.array([[2, 0], [-1, 2]]), np.array([1, -1])
KEYS: list[Any] = [
    0, -1, (1, 2), (1, 2, 0),
    slice(None), slice(1, 3), slice(None, None, -1), slice(-3, None, 2), ..., (..., 0), (0, ...),
    None, (None, 1, None), (slice(None), None, slice(0, 2)), [0, 2], [[0, 2], [1, 1]], ROWS, (ROWS, 1),
    (slice(None), COLUMNS), (ROWS[0], slice(None), COLUMNS), (ROWS[0], COLUMNS), (0, slice(None), COLUMNS),
    (COLUMNS, None, COLUMNS), BASE[:, 0, 0] > 5, (slice(None), np.array([True, False, True])), BASE > 7,
    (BASE[..., 0] > 7, 1), True, False, np.array(1), np.int64(2), (), [], range(2), [True, False, True, True],
    (slice(None), [0, 1], [1, 0]), slice(10, 20), slice(2, 1), np.array([], np.int64), slice(np.int64(1), None),
]  # fmt: skip


def tensors(key: Any) -> Any:
    if isinstance(key, np.ndarray):
        return paddle.to_tensor(key)
    return tuple(map(tensors, key)) if isinstance(key, tuple) else key


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("as_tensors", [False, True])
def test_reading_gives_what_numpy_gives(key: Any, as_tensors: bool) -> None:
    got = paddle.to_tensor(BASE)[tensors(key) if as_tensors else key]
    np.testing.assert_array_equal(got.numpy(), BASE[key])
    assert got.shape == list(BASE[key].shape)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_writing_gives_what_numpy_gives(key: Any, needs_gradient: bool) -> None:
    for value in (7.0, 3, np.full(BASE[key].shape, 2.5, np.float32)):
        x, want = paddle.to_tensor(BASE), BASE.copy()
        if needs_gradient:
            x.stop_gradient = False
            x = x * 1.0
        x[key] = value
        want[key] = value
        np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_recorded_index_gives_what_numpy_gives(key: Any) -> None:
    b = Builder()
    x = Tensor(b.argument(TensorType(paddle.float32, (symbol("N"), 3, 2))))
    with replaced(trace=(recorder := Recorder(b))):
        read = x[key]
        y = x * 1.0
        y[key] = 7.0
        b.block.results = [recorder.value_of(read), recorder.value_of(y)]
    read_array, written = Compiled(Program({"main": b.block})).run([BASE], np)
    want = BASE.copy()
    want[key] = 7.0
    np.testing.assert_array_equal(read_array, BASE[key])
    np.testing.assert_array_equal(written, want)


@given(hnp.basic_indices(SHAPE, allow_newaxis=True, allow_ellipsis=True))
@settings(max_examples=examples(60), deadline=None)
def test_any_basic_index_reads_and_writes_as_numpy(key: Any) -> None:
    x, want = paddle.to_tensor(BASE), BASE.copy()
    np.testing.assert_array_equal(x[key].numpy(), want[key])
    x[key] = -1.0
    want[key] = -1.0
    np.testing.assert_array_equal(x.numpy(), want)


@given(hnp.integer_array_indices(SHAPE, result_shape=hnp.array_shapes(max_dims=2, max_side=3)), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_any_integer_index_reads_as_numpy(key: Any, as_tensors: bool) -> None:
    got = paddle.to_tensor(BASE)[tensors(key) if as_tensors else key]
    np.testing.assert_array_equal(got.numpy(), BASE[key])


def test_basic_indices_share_memory_and_others_do_not() -> None:
    x = paddle.to_tensor(BASE)
    row, picked = x[1], x[[1]]
    x[1] = 0.0
    assert row.sum().item() == 0.0
    assert picked.sum().item() == BASE[1].sum()
    row[0] = 5.0
    assert x[1, 0].tolist() == [5.0, 5.0]


def test_bounds_may_be_tensors_of_one_element() -> None:
    x, one = paddle.to_tensor(BASE), paddle.to_tensor(1)
    np.testing.assert_array_equal(x[one : paddle.to_tensor([3])].numpy(), BASE[1:3])
    np.testing.assert_array_equal(x[one].numpy(), BASE[1])
    np.testing.assert_array_equal(x[[one, 2]].numpy(), BASE[[1, 2]])


def test_a_written_value_may_overlap_what_it_is_written_to() -> None:
    x = paddle.to_tensor(np.arange(5.0))
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]


def test_a_write_keeps_the_dtype() -> None:
    x = paddle.to_tensor([1, 2, 3])
    x[0] = 7.9
    x[1:] = paddle.to_tensor([8.5, 9.5])
    assert x.tolist() == [7, 8, 9]


def test_gradients_flow_through_reads_and_writes() -> None:
    x = paddle.to_tensor(BASE, stop_gradient=False)
    v = paddle.to_tensor([10.0, 20.0], stop_gradient=False)
    y = x * 2.0
    y[1, 2] = v
    (y * y).sum().backward()
    want = 8 * BASE
    want[1, 2] = 0
    np.testing.assert_allclose(x.grad.numpy(), want)
    np.testing.assert_allclose(v.grad.numpy(), [20.0, 40.0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x[5], IndexError, "index 5 is out of range for axis 0"),
        (lambda x: x[0, 0, 0, 0], IndexError, "too many indices: the tensor has 3 axes, but 4"),
        (lambda x: x[paddle.to_tensor([4])], IndexError, "out of range"),
        (lambda x: x[1.5], IndexError, "an index must be an int, a slice"),
        (lambda x: x["a"], IndexError, "an index must be an int, a slice"),
        (lambda x: x[paddle.to_tensor([1.0])], IndexError, "integer dtype or bool, not float32"),
        (lambda x: x[..., ...], IndexError, "only one ellipsis"),
        (lambda x: x[::0], ValueError, "slice step cannot be zero"),
        (lambda x: x[paddle.to_tensor([True])], IndexError, "mask of extent 1 does not fit axis 0 of extent 4"),
        (lambda x: x[paddle.to_tensor(1.0) :], TypeError, "a bound of a slice must be an integer"),
        (lambda x: x["a":], TypeError, "a bound of a slice must be an int"),
        (lambda x: x.__setitem__(0, paddle.zeros([5])), ValueError, "does not fit the indexed shape"),
        (lambda x: x.__setitem__(0, "a"), TypeError, r"setitem\(\) needs a Tensor"),
        (lambda x: paddle.zeros([])[0], IndexError, "too many indices"),
    ],
)
def test_refusals_name_axis_and_extent(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(paddle.to_tensor(BASE))


@pytest.mark.parametrize("far", [2**62, 2**63 - 1, 2**64, 10**30])
def test_bounds_and_steps_that_no_extent_reaches(far, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    x = np.arange(12, dtype="int8").reshape(3, 4)

    def f(x):
        return x[..., -3:-1:far], x[:far:-far], x[-far:2], x[far:], x[::far, ::-far]

    static = paddle.jit.to_static(f, full_graph=True, input_spec=[paddle.static.InputSpec([None, None], "int8")])
    for _ in range(3):
        for found, eager, want in zip(static(paddle.to_tensor(x)), f(paddle.to_tensor(x)), f(x), strict=True):
            np.testing.assert_array_equal(found.numpy(), want)
            np.testing.assert_array_equal(eager.numpy(), want)
