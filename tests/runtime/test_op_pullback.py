"""One pull-back serves calls that differ in extents, places and target shapes only."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.eager.tape import op_derivative


def made_by(calls: list[Callable[[], Any]]) -> list[int]:
    """Return how many pull-backs each backward of a sum derives."""
    counts: list[int] = []
    for call in calls:
        before = len(op_derivative._CACHE)
        call().sum().backward()
        counts.append(len(op_derivative._CACHE) - before)
    return counts


def leaf(*shape: int) -> Any:
    return paddle.to_tensor(np.ones(shape), stop_gradient=False)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: leaf(n, 6).reshape([2 * n, 3]),
        lambda n: leaf(n, 6).reshape([n, -1]),
        lambda n: leaf(11, 2)[n],
        lambda n: leaf(11, 2)[n : n + 3],
        lambda n: leaf(1, 2).expand([n, 2]),
        lambda n: paddle.matmul(leaf(n, 3), leaf(3, 2)),
    ],
    ids=["reshape", "reshape_rest", "index", "slice", "expand", "matmul"],
)
def test_a_second_shape_or_place_derives_nothing(call: Callable[[int], Any]) -> None:
    assert made_by([lambda n=n: call(n) for n in (4, 5, 7, 8)])[1:] == [0, 0, 0]


def test_a_reshape_has_the_gradient_of_its_operand() -> None:
    x = leaf(2, 6)
    (x.reshape([3, 4]) * paddle.to_tensor(np.arange(12.0).reshape(3, 4))).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(12.0).reshape(2, 6))
