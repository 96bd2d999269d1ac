"""Writes by index leave what the tape keeps as it was: eager gradients are those of a Program, of any order."""

import gc
from collections.abc import Callable

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import AutodiffError
from dy2st.runtime.eager.tensor import Tensor

POINT = np.array([0.7, 1.3, -0.4])


def recurrence(x: Tensor) -> Tensor:
    y = x.clone()
    for i in range(1, 3):
        y[i] = y[i] - y[i - 1] * y[i] / (y[i - 1] + 2)
    return (y * y).sum()


def elimination(x: Tensor) -> Tensor:
    a = paddle.eye(3, dtype="float64") * 4 + x.reshape([3, 1]) * x.reshape([1, 3])
    b = x.clone()
    for k in range(3):
        for i in range(k + 1, 3):
            factor = a[i, k] / a[k, k]
            a[i] -= factor * a[k]
            b[i] -= factor * b[k]
    solved = paddle.zeros([3], "float64")
    for i in range(2, -1, -1):
        solved[i] = (b[i] - (a[i, i + 1 :] * solved[i + 1 :]).sum()) / a[i, i]
    return (solved * solved).sum()


def rows_that_stay_views(x: Tensor) -> Tensor:
    a = paddle.eye(3, dtype="float64") * 4 + x.reshape([3, 1]) * x.reshape([1, 3])
    flat = a.reshape([-1])
    for k in range(3):
        row = a[k]
        row[:] = row / a[k, k]
        for i in range(3):
            if i != k:
                a[i] -= a[i, k] * row
    return (flat * flat).sum()


def table(x: Tensor) -> Tensor:
    found = paddle.zeros([4, 4], "float64")
    for i in range(1, 4):
        for j in range(1, 4):
            found[i, j] = x[i - 1] * x[j - 1] + paddle.maximum(found[i - 1, j], found[i, j - 1])
    return found[3, 3] * found[2, 2]


def result_that_is_needed(x: Tensor) -> Tensor:
    a = (x * 0.3).exp()
    b = a * a
    a[1] = b[0]
    a[a > 1.2] = a[a > 1.2] ** 2
    return (a * b).sum()


def buffer_without_gradient(x: Tensor) -> Tensor:
    buffer = paddle.zeros([3], "float64")
    back = buffer[1:]
    loss = x.sum()
    for i in range(3):
        buffer[i] = i + 1.0
        loss = loss + (buffer * x * x).sum() + (back * x[:2] * x[1:]).sum()
    return loss


def derivatives(f: Callable[[Tensor], Tensor]) -> list[np.ndarray]:
    x = paddle.to_tensor(POINT, stop_gradient=False)
    y = f(x)
    (slope,) = paddle.grad(y, x, create_graph=True)
    (second,) = paddle.grad((slope * slope).sum(), x)
    return [y.numpy(), slope.numpy(), second.numpy()]


def view_from_before_the_first_gradient(x: Tensor) -> Tensor:
    whole = paddle.ones([3, 3], "float64")
    rows, first = whole.reshape([3, 3]), whole[0]
    whole[0] = x * x
    whole[1] = first[1:2] * x
    return (rows * rows * rows).sum() + (first * first).sum()


@pytest.mark.parametrize(
    "f",
    [
        view_from_before_the_first_gradient,
        recurrence,
        elimination,
        rows_that_stay_views,
        table,
        result_that_is_needed,
        buffer_without_gradient,
    ],
)
def test_gradients_past_writes_are_those_of_the_program(f: Callable[[Tensor], Tensor]) -> None:
    static = derivatives(paddle.jit.to_static(f, full_graph=True))
    for found, wanted in zip(derivatives(f), static, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    values = [[float(f(paddle.to_tensor(POINT + e))) for e in step * np.eye(3)] for step in (1e-6, -1e-6)]
    differences = (np.array(values[0]) - values[1]) / 2e-6
    np.testing.assert_allclose(static[1], differences, rtol=1e-6, atol=1e-7)


def test_the_tangent_past_a_write() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 1.0
    z = y * y
    y[0] = 7.0
    assert paddle.incubate.autograd.forward_grad(z, x).tolist() == [2.0, 4.0]


def test_all_views_go_along_and_those_that_are_gone_are_forgotten() -> None:
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False) * 1.0
    back = x[1:]
    last = back[1]
    for _ in range(1000):
        x[0:1].sum()
    gc.collect()
    x[2] = 5.0
    x[1:2].reshape([1])[0] = 4.0
    assert (x.tolist(), back.tolist(), last.item()) == ([1.0, 4.0, 5.0], [4.0, 5.0], 5.0)
    back[1] = 6.0
    assert (x.tolist(), last.item(), x.inplace_version) == ([1.0, 4.0, 6.0], 6.0, 3)
    assert x.storage_version is not None
    assert len(x.storage_version.views) < 100


def test_a_tensor_that_became_a_view_goes_along() -> None:
    x = paddle.to_tensor([1.0, 2.0, 3.0, 4.0], stop_gradient=False) * 1.0
    x.reshape_([2, 2])
    row = x[0]
    x[0, 1] = 9.0
    assert (row.tolist(), x.tolist()) == ([1.0, 9.0], [[1.0, 9.0], [3.0, 4.0]])


def test_memory_of_another_library_stays_where_it_is() -> None:
    lent = np.zeros(3, "float32")
    w = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    x = paddle.from_dlpack(lent)
    y = x * w
    x[0] = 5.0
    assert lent.tolist() == [5.0, 0.0, 0.0]
    with pytest.raises(AutodiffError, match="operand 0 of 'mul' was changed in place after it was used"):
        y.sum().backward()


def test_memory_that_was_overwritten_before_is_not_forgotten_by_moving() -> None:
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    x = w * 2.0
    y = x * x
    x.add_(paddle.ones([2]))
    x[0] = 3.0
    with pytest.raises(AutodiffError, match="operand 0 of 'mul' was changed in place after it was used"):
        y.sum().backward()
