"""Which axes in a loop are kept apart: those of rows through what networks do, none where rows meet."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.passes.specialize_shapes import narrowed
from dy2st.runtime.backends.cpu.fusion.shape_assumptions import assumptions
from dy2st.runtime.backends.cpu.loop_parallel.independent_axes import independent_axes
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.interpreter.cost_model import bindings

X, H, W = np.ones((3, 5, 4), "float32"), np.ones((5, 7), "float32"), np.ones((4, 7), "float32")


def loop_of(turn, x=X, h=H, w=W):
    """Return the loop whose turns are `turn(x, h, w, t)`, as code is made of it."""

    def run(x, h, w):
        t = 0
        while t < x.shape[0]:
            h = turn(x, h, w, t)
            t += 1
        return h * 1.0  # no result of the loop's is one of the Program's: it need not tell which tensor that is

    static = paddle.jit.to_static(run, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, (x, h, w)))
    program = static.concrete_program.main_program
    known = assumptions(program, bindings(program, (x, h, w)))
    return next(o for o in prepared(narrowed(program, known)).walk() if o.op.name == "while_loop")


def axes(loop):
    """Return the axes of what is carried that are kept apart."""
    apart = independent_axes(loop)
    return None if apart is None else [apart.get(v) for v in loop.results]


APART = {
    "a product with weights": lambda x, h, w, t: paddle.tanh(x[t] @ w + h),
    "gates": lambda x, h, w, t: F.sigmoid(x[t] @ w)[:, 1:] .sum(-1, keepdim=True) * h,
    "rows that are normalised": lambda x, h, w, t: F.softmax(h + x[t] @ w, axis=-1),
    "a layer norm": lambda x, h, w, t: F.layer_norm(h + x[t] @ w, [7]),
    "parts put together": lambda x, h, w, t: paddle.concat([h[:, :3], (x[t] @ w)[:, 3:]], axis=1),
    "split": lambda x, h, w, t: paddle.concat(list(reversed(paddle.split(h, [3, 4], axis=1))), axis=1) + x[t] @ w,
    "turned twice": lambda x, h, w, t: (h.transpose([1, 0]) * 2).transpose([1, 0]) + x[t] @ w,
    "more axes": lambda x, h, w, t: h.unsqueeze(1).squeeze(1) + h.reshape([-1, 7, 1])[:, :, 0] + x[t] @ w,
    "a choice": lambda x, h, w, t: paddle.where(h > 0, h, x[t] @ w),
    "a branch on a number": lambda x, h, w, t: h * 2 + x[t] @ w if t > 1 else h + x[t] @ w,
    "a write into columns": lambda x, h, w, t: set_columns(h, x[t] @ w + h),
    "a batch of products": lambda x, h, w, t: (h.unsqueeze(1) @ h.unsqueeze(2)).squeeze(2) * h + x[t] @ w,
}  # fmt: skip
MEET = {
    "a sum of rows": lambda x, h, w, t: h - h.mean(axis=0) + x[t] @ w,
    "a number of all": lambda x, h, w, t: h / h.sum() + x[t] @ w,
    "rows that move": lambda x, h, w, t: paddle.concat([h[1:], h[:1]], axis=0) + x[t] @ w,
    "rows turned over": lambda x, h, w, t: paddle.flip(h, [0]) + x[t] @ w,
    "a product of rows": lambda x, h, w, t: (h @ h.transpose([1, 0])) @ h + x[t] @ w,
    "a running sum": lambda x, h, w, t: paddle.cumsum(h, axis=0) + x[t] @ w,
    "the number of rows": lambda x, h, w, t: h / h.shape[0] + x[t] @ w,
    "a branch on a row": lambda x, h, w, t: h * 2 + x[t] @ w if h[0, 0] > 1 else h + x[t] @ w,
    "a row that is chosen": lambda x, h, w, t: paddle.gather(h, paddle.argsort(h[:, 0])) + x[t] @ w,
    "one row for all": lambda x, h, w, t: h + h[0] + x[t] @ w,
    "a printed row": lambda x, h, w, t: (print(t), h + x[t] @ w)[1],
}


def set_columns(h, y):
    h = h * 1
    h[:, 2] = y[:, 2]
    return h


@pytest.mark.parametrize("name", APART)
def test_rows_are_apart(name):
    assert axes(loop_of(APART[name])) == [0, None]


@pytest.mark.parametrize("name", MEET)
def test_rows_meet(name):
    assert axes(loop_of(MEET[name])) is None


def test_rows_need_not_be_the_first_axis():
    h = np.ones((2, 5, 7), "float32")
    assert axes(loop_of(lambda x, h, w, t: h - h.mean(axis=0) + x[t] @ w, h=h)) == [1, None]


def test_any_axis_of_what_is_elementwise_will_do():
    assert axes(loop_of(lambda x, h, w, t: paddle.tanh(h))) == [0, None]
    assert axes(loop_of(lambda x, h, w, t: paddle.tanh(h) - h.sum(axis=0))) == [1, None]


def test_as_many_rows_as_columns_are_no_columns():
    h, w = np.ones((20, 20), "float32"), np.ones((20, 20), "float32")
    loop = loop_of(lambda x, h, w, t: paddle.tanh(x[t] @ w + h @ w), x=np.ones((3, 20, 20), "float32"), h=h, w=w)
    apart = independent_axes(loop)
    assert apart is not None
    assert [apart.get(v) for v in loop.operands if str(v.type).startswith("float32")] == [0, 1, None]


def test_a_sum_over_another_axis_keeps_its_rows():
    x = np.ones((3, 2, 5, 7), "float32")
    assert axes(loop_of(lambda x, h, w, t: h + paddle.tanh(x[t]).sum(axis=0), x=x)) == [0, None]
