"""The cost of a gradient grows with the turns of a loop as that of the loop itself: counted in elements written."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.autograd_engine import backward_pass
from dy2st.runtime.interpreter import plan_builder

WIDTH = 8


class Counter:
    """Counts the elements of the arrays that steps of plans make; what is written in place counts what is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.count = 0
        monkeypatch.setenv("DY2ST_BACKEND", "interpreter")
        compiler: Any = plan_builder._BlockCompiler
        stored = compiler._stored

        def counting(this: Any, operation: Any, f: Callable[..., Any], slots: Any) -> Any:
            return stored(this, operation, f if operation.name.startswith("variant") else self.counted(f), slots)

        monkeypatch.setattr(compiler, "_stored", counting)
        monkeypatch.setattr(plan_builder, "bare_ufunc", lambda *_: None)

    def counted(self, f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*operands: Any) -> Any:
            made = f(*operands)
            for array in made if isinstance(made, tuple) else (made,):
                if not isinstance(array, np.ndarray) or array.base is not None:
                    continue
                in_place = bool(operands) and array is operands[0]
                self.count += np.size(operands[1]) if in_place else array.size
            return made

        return call


def number_first(x):
    total = 0.0
    for row in x:
        total = total + row.sum()
    return total


def tensor_first(x):
    total = paddle.zeros([WIDTH])
    for row in x:
        total = total + row * row
    return total.sum()


def in_a_branch(x):
    total = 0.0
    for row in x:
        if row.sum() > 0:
            total = total + (row * row).sum()
    return total


def read_in_a_branch(x):
    total = paddle.zeros([], "float64")
    i = 0
    while i < len(x):
        if total < 3:
            total = total + x[i].sum()
        else:
            total = total * x[i, 0]
        i += 1
    return total


def rows_of_rows(x):
    total = paddle.zeros([], "float64")
    for i in range(len(x)):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                total = total + x[i, j] ** 2
    return total


def early_exit(x):
    total = 0.0
    for row in x:
        total = total + row.sum()
        if total > 1e9:
            break
    return total


def gathered(x):
    total = 0.0
    for i in range(len(x)):
        total = total + paddle.index_select(x, paddle.to_tensor([0]) + i).sum()
    return total


def columns(x):
    total = 0.0
    y = x.transpose([1, 0])
    for i in range(len(x)):
        total = total + y[:, i].sum()
    return total


def written(x):
    y = x * 1.0
    for i in range(1, len(x)):
        y[i] = y[i] + y[i - 1] * 0.5
    return y.sum()


def listed(x):
    rows = [x[0]]
    for row in x:
        rows.append(rows[-1] * 0.9 + row)
    total = 0.0
    for row in rows:
        total = total + row.sum()
    return total


def stacked(x):
    rows = []
    for row in x:
        if row.sum() > 0:
            rows.append(row * 2)
    return paddle.stack(rows).sum()


FUNCTIONS = (number_first, tensor_first, in_a_branch, read_in_a_branch, rows_of_rows, early_exit, gathered, columns,
             written, listed, stacked)  # fmt: skip


CASES = [(f, policy) for f in FUNCTIONS for policy in ("all", "sqrt")]
CASES.remove((written, "sqrt"))  # what its turns carry is a matrix, and each segment keeps one


@pytest.mark.parametrize(("function", "checkpoint"), CASES)
def test_gradients_are_linear_in_the_turns(function, checkpoint, monkeypatch):
    static = paddle.jit.to_static(function, full_graph=True, checkpoint=checkpoint)
    counter = Counter(monkeypatch)
    counts = []
    for turns in (32, 64, 128):
        x = paddle.to_tensor(np.random.default_rng(0).normal(size=(turns, WIDTH)), stop_gradient=False)
        static(x).backward()
        counter.count = 0
        x.clear_grad()
        static(x).backward()
        counts.append(counter.count)
        eager = paddle.to_tensor(x.numpy(), stop_gradient=False)
        function(eager).backward()
        np.testing.assert_allclose(x.grad.numpy(), eager.grad.numpy(), rtol=1e-12)
    assert counts[2] - counts[1] < 2.1 * (counts[1] - counts[0]), counts


def test_eager_rows_are_added_in_place(monkeypatch):
    """Each row's cotangent is added to one matrix; there is no sum of matrices."""
    sizes: list[int] = []
    added = backward_pass.add_values

    def counting(a: Any, b: Any) -> Any:
        sizes.append(np.size(b))
        return added(a, b)

    monkeypatch.setattr(backward_pass, "add_values", counting)
    x = paddle.to_tensor(np.ones((32, WIDTH)), stop_gradient=False)
    (number_first(x) + (x * x).sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((32, WIDTH), 3.0))
    assert sizes == [32 * WIDTH] * len(sizes)
    assert len(sizes) <= 2
