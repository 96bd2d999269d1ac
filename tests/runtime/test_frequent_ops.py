"""Eager ops that were called often: the thin call of native code gives what NumPy's way gives."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.ir.context import current
from dy2st.ir.opdef import REGISTRY
from dy2st.ops.core.base import Op
from dy2st.records import replace
from dy2st.runtime.eager import dispatch, frequent_ops

FIRST = {
    name: next(iter(op.samples(np.random.default_rng(0))), None)
    for name, op in REGISTRY.items()
    if isinstance(op, Op) and not (op.effect or op.random or op.blocks)
}
FIRST = {
    name: s
    for name, s in FIRST.items()
    if s and s.operands and all(isinstance(x, np.ndarray) and x.ndim for x in s.operands)
}


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Let every op have its code at its first call."""
    context = current()
    monkeypatch.setattr(context, "process", replace(context.process, ops={}, looks_at_op=0))
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def code_of(name, **attributes):
    """Return the thin calls that there are for an op."""
    op = REGISTRY[name]
    return current().process.ops[(op, *attributes.items()) if attributes else op].ready


def random(*shape, dtype="float32"):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("name", FIRST)
def test_every_op_gives_what_numpy_gives(name):
    op, sample = REGISTRY[name], FIRST[name]
    operands = [paddle.to_tensor(x) for x in sample.operands]
    with np.errstate(all="ignore"):
        expected = op.eval(np, *(t.payload for t in operands), **sample.attributes)
    for _ in range(2):
        made = dispatch.apply(op, *operands, **sample.attributes)
    pairs = zip(made, expected, strict=True) if isinstance(made, tuple) else [(made, expected)]
    for got, wanted in pairs:
        assert type(got) is paddle.Tensor
        assert got.numpy().dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6, atol=1e-9)
        assert not any(np.shares_memory(got.payload, t.payload) for t in operands) or op.is_view


@pytest.mark.parametrize("function", [paddle.tanh, F.relu, F.sigmoid, F.gelu, F.softmax, lambda x: x * x, paddle.mean])
def test_gradients_are_those_of_numpys_way(function):
    def gradient():
        x = paddle.to_tensor(random(3, 4), stop_gradient=False)
        function(x).sum().backward()
        return x.grad.numpy()

    before, process = gradient(), current().process
    process.ops, table = None, process.ops
    expected = gradient()
    assert table
    np.testing.assert_allclose(before, expected, rtol=1e-5, atol=1e-7)


def test_a_call_is_machine_code_for_any_extents_and_whether_or_not_a_gradient_flows():
    for shape in ((2, 3), (3, 3), (1, 5), (4, 1)):
        x = paddle.to_tensor(random(*shape))
        y = paddle.to_tensor(random(*shape), stop_gradient=False)
        assert (x + y).numpy().tolist() == (x.numpy() + y.numpy()).tolist()
        assert not (x + y).stop_gradient
        assert (x + x).stop_gradient
    assert len(code_of("add")) == 1


def test_broadcast_operands_and_arrays_that_are_not_contiguous_are_right():
    x, row, one = random(3, 4), random(4), random(1, 4)
    for _ in range(3):
        for a, b in ((x, row), (x, one), (x.T.copy().T, x), (x[::2], x[1:]), (x[:, ::-1], x)):
            assert (paddle.to_tensor(a) * paddle.to_tensor(b)).numpy().tolist() == (a * b).tolist()


def test_attributes_that_are_equal_and_mean_another_thing_are_told_apart():
    x = paddle.to_tensor([[0.0, -1.0]])
    for slope in (0.0, -0.0, 1, 1.0, True):
        made = F.leaky_relu(x, slope).numpy()
        assert np.signbit(made).tolist() == np.signbit(np.where(x.numpy() >= 0, x.numpy(), x.numpy() * slope)).tolist()


def test_dtypes_have_code_of_their_own():
    for dtype in ("float32", "float64", "int32", "int64", "bool"):
        x = paddle.to_tensor(np.array([[0, 1], [1, 1]]).astype(dtype))
        assert (x == x).numpy().all()
        assert (x + x).numpy().dtype == np.dtype(dtype)
    assert len(code_of("add")) <= 4


def test_an_index_out_of_range_is_refused_in_the_words_of_eager_mode():
    x, good, bad = random(3, 2), paddle.to_tensor([0, 2]), paddle.to_tensor([0, 7])
    for _ in range(2):
        assert paddle.to_tensor(x)[good].numpy().tolist() == x[[0, 2]].tolist()
        with pytest.raises(IndexError, match=r"out of (range|bounds)"):
            paddle.to_tensor(x)[bad]


def test_an_operation_on_operands_that_do_not_fit_is_refused():
    x, y = paddle.to_tensor(random(2, 3)), paddle.to_tensor(random(2, 3))
    assert paddle.matmul(x, y, transpose_y=True).shape == [2, 2]
    with pytest.raises(ValueError, match="matmul"):
        paddle.matmul(x, y)
    with pytest.raises(ValueError, match="broadcast"):
        x + paddle.to_tensor(random(5))


def test_results_may_be_written_and_operands_are_left_alone():
    x = paddle.to_tensor(random(2, 2))
    before = x.numpy()
    made = F.relu(x)
    made.add_(paddle.ones([2, 2]))
    assert x.numpy().tolist() == before.tolist()
    assert made.numpy().tolist() == (np.maximum(before, 0) + 1).tolist()


def test_code_is_made_beside_and_taken_at_a_call_that_its_number_tells(monkeypatch):
    process = current().process
    monkeypatch.setattr(process, "looks_at_op", 4)
    x = paddle.to_tensor(random(2, 2))
    had = []
    for _ in range(16):
        x + x
        had.append(len(code_of("add")))
    assert had == [0] * 11 + [1] * 5


def test_large_products_stay_with_numpy():
    x = paddle.to_tensor(random(80, 80))
    paddle.matmul(x, x)
    paddle.matmul(x, x)
    assert not code_of("matmul", transpose_x=False, transpose_y=False)
    assert (
        current().process.ops[(REGISTRY["matmul"], ("transpose_x", False), ("transpose_y", False))].most
        == frequent_ops._SMALL
    )


def test_the_interpreter_alone_has_no_code(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "interpreter")
    x = paddle.to_tensor(random(2, 2))
    for _ in range(3):
        x + x
    assert not code_of("add")
