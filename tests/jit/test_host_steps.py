"""A Python function on arrays as a step of a Program: values, order of effects, gradients, loops, what is refused."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec

seen: list[Any] = []


@paddle.jit.host_step(like=[InputSpec([None], "int64"), InputSpec([None], "int64")])
def assignment(cost: Any) -> Any:
    optimize = pytest.importorskip("scipy.optimize")
    seen.append(cost.shape)
    return optimize.linear_sum_assignment(cost)


@paddle.jit.host_step(like=InputSpec([], "float32"))
def largest(x: Any) -> Any:
    seen.append(float(x.sum()))
    return x.max()


def matched(x: Any, y: Any) -> Any:
    cost = ((x.unsqueeze(1) - y.unsqueeze(0)) ** 2).sum(-1)
    rows, columns = assignment(cost)
    return ((x.gather(rows) - y.gather(columns)) ** 2).sum()


def test_a_matching_loss_is_one_program_with_gradients() -> None:
    static = paddle.jit.to_static(matched, full_graph=True)
    points = np.random.default_rng(1).standard_normal((5, 2)).astype("float32")
    for n, m in ((3, 3), (3, 3), (2, 4), (5, 3)):
        found = []
        for function in (matched, static):
            x = paddle.to_tensor(points[:n], stop_gradient=False)
            y = paddle.to_tensor(np.arange(2 * m).reshape(m, 2)[::-1] % 7 + 0.5, "float32")
            loss = function(x, y)
            loss.backward()
            found.append((float(loss), x.grad.tolist()))
        assert found[0] == found[1]
    assert len(static.program_cache) == 1


def test_it_runs_once_a_turn_of_a_loop_on_the_path_that_is_taken() -> None:
    def function(x: Any) -> Any:
        total = x * 0
        while total.sum() < 10:
            if total.sum() > 2:
                total = total + largest(total)
            total = total + 1
        return total

    static = paddle.jit.to_static(function, full_graph=True)
    for n in (2, 3, 2):
        x, runs = paddle.zeros([n]), []
        for f in (function, static):
            seen.clear()
            runs.append((f(x).tolist(), list(seen)))
        assert runs[0] == runs[1]


def test_no_gradient_flows_through_it() -> None:
    for function in (lambda x: x * largest(x), paddle.jit.to_static(lambda x: x * largest(x), full_graph=True)):
        x = paddle.to_tensor([1.0, 3.0], stop_gradient=False)
        function(x).sum().backward()
        assert x.grad.tolist() == [3, 3]


def test_what_is_not_as_declared_is_refused() -> None:
    wrong = paddle.jit.host_step(lambda x: (x, x), like=InputSpec([None], "float32"))
    with pytest.raises(ValueError, match="returned 2 arrays, 1 were declared"):
        paddle.jit.to_static(lambda x: wrong(x), full_graph=True)(paddle.ones([2]))
    with pytest.raises(TypeError, match="a host step, takes tensors alone"):
        largest(np.ones(2))
    with pytest.raises(TypeError, match="host_step takes a function, not int"):
        paddle.jit.host_step(3, like=InputSpec([], "float32"))
