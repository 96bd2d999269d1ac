"""Eager ops on large arrays run native code: the values, gradients and errors of NumPy's way, and nothing shared."""

import math
import threading

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.ir.context import current
from dy2st.records import replace
from dy2st.runtime.eager import native_ops
from tests.ops.test_registry import cases
from tests.runtime.backends.cpu.test_same_as_interpreter import compare

T = paddle.to_tensor
FIRST = {case.values[0].name: case.values for case in reversed(cases()) if case.values[0].native_in_eager}
"""The first sample of each op."""


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Let every op run native code, at once."""
    context = current()
    monkeypatch.setattr(context, "process", replace(context.process, native_from=0))
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    monkeypatch.setattr(native_ops, "_programs", {})


def by_numpy(function):
    """Return what a function gives where no op runs native code."""
    context = current()
    before, context.process = context.process, replace(context.process, native_from=math.inf)
    try:
        return function()
    finally:
        context.process = before


@pytest.mark.parametrize("name", FIRST)
def test_every_op_gives_what_numpy_gives(name):
    op, sample = FIRST[name]
    operands = list(sample.operands)
    with np.errstate(all="ignore"):
        want = op.eval(np, *operands, **sample.attributes)
    found = native_ops.run_natively(op, operands, sample.attributes)
    if found is None:
        assert op.random
        assert None in sample.attributes["shape"]  # as only Programs have it
        return
    compare(found, np.asarray(want) if not isinstance(want, tuple) else tuple(map(np.asarray, want)))


@pytest.mark.parametrize("function", [F.gelu, F.softmax, F.silu, paddle.erf, lambda x: F.layer_norm(x, [5]), F.mish])
def test_gradients_to_second_order(function, rng):
    values = rng.normal(size=(4, 5))

    def both():
        x = T(values, stop_gradient=False)
        first = paddle.grad((function(x) * x).sum(), x, create_graph=True)[0]
        (first * first).sum().backward()
        return first.numpy(), x.grad.numpy()

    for native, numpy in zip(both(), by_numpy(both), strict=True):
        np.testing.assert_allclose(native, numpy, rtol=1e-12, atol=1e-12)


def test_arrays_in_any_layout(rng):
    values = rng.normal(size=(6, 8, 4)).astype("float32")
    frozen = values.copy()
    frozen.flags.writeable = False
    for array in (values[::-1, ::2], values.transpose(2, 0, 1), values[:0], values[..., 1], frozen, values[1:, 3]):
        compare(F.softmax(T(array)).numpy(), by_numpy(lambda a=array: F.softmax(T(a)).numpy()))


def test_a_result_shares_nothing_with_an_operand():
    x = T([1.0, 2.0])
    for function in (lambda x: x**1.0, lambda x: F.leaky_relu(x, 1.0), lambda x: paddle.cumsum(x.reshape([2, 1]), 1)):
        y = function(x)
        y[0] = 9.0
        assert x.tolist() == [1.0, 2.0]


def test_errors_are_those_of_numpys_way():
    label = T(np.array([0, 7]))

    def text():
        with pytest.raises(ValueError, match="label 7 is not one of 3 classes") as caught:
            F.cross_entropy(T(np.ones((2, 3), "float32")), label)
        return type(caught.value), str(caught.value)

    assert text() == by_numpy(text)


def test_a_kind_that_the_op_refuses_is_looked_at_once(monkeypatch):
    op, wrong = FIRST["softmax_cross_entropy"][0], [np.ones((2, 3), "float32"), np.zeros(5, "int64")]
    for _ in range(3):
        assert native_ops.run_natively(op, wrong, {"axis": 1, "ignore_index": -100}) is None
        monkeypatch.setattr(native_ops, "op_program", lambda *_: pytest.fail("it was looked at again"))
    assert list(native_ops._programs.values()) == [None]


def test_small_arrays_and_kinds_without_a_program_stay_with_numpy(monkeypatch):
    context = current()
    monkeypatch.setattr(context, "process", replace(context.process, native_from=1 << 15))
    F.gelu(T([1.0]))
    assert native_ops._programs == {}
    F.gelu(T(np.ones(1 << 15, "float32")))
    assert len(native_ops._programs) == 1
    assert native_ops.run_natively(FIRST["gelu"][0], [np.ones(1 << 15)], {"approximate": object()}) is None


def test_kinds_are_told_apart_by_attributes_and_shapes():
    x = T(np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4))
    for slope in (0.0, -0.0, 1, 1.0, 0.5):
        compare(F.leaky_relu(x, slope).numpy(), by_numpy(lambda s=slope: F.leaky_relu(x, s).numpy()), exact=True)
    for shape in ((3, 4), (4, 4), (1, 4), (4, 1), (2, 3, 1)):
        y = T(np.arange(math.prod(shape), dtype="float32").reshape(shape))
        compare(F.softmax(y).numpy(), by_numpy(lambda y=y: F.softmax(y).numpy()))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: paddle.rand([3, 5]),
        lambda: paddle.randint(-3, 9, [7]),
        lambda: F.dropout(paddle.ones([4, 6]), 0.3),
        lambda: paddle.bernoulli(paddle.full([9], 0.5)),
        lambda: paddle.randn([2, 3, 5]),
    ],
)
def test_random_numbers_are_those_of_numpys_way(draw):
    def drawn():
        paddle.seed(3)
        return draw().numpy(), draw().numpy()

    found, want = drawn(), by_numpy(drawn)
    assert native_ops._programs
    assert all(np.allclose(a, b, rtol=1e-6, atol=0) for a, b in zip(found, want, strict=True))


def test_there_are_at_most_so_many_kinds(monkeypatch):
    monkeypatch.setattr(native_ops, "_MOST_KINDS", 3)
    monkeypatch.setenv("DY2ST_BACKEND", "interpreter")
    for slope in range(20):
        F.leaky_relu(T([-1.0]), float(slope))
        assert len(native_ops._programs) <= 3


def test_threads_share_the_programs(rng):
    x, found = T(rng.normal(size=(64, 65)).astype("float32")), []
    want = by_numpy(lambda: F.gelu(x).numpy())

    def work():
        for _ in range(20):
            found.append(np.abs(F.gelu(x).numpy() - want).max())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert max(found) < 1e-6


def test_a_run_that_may_not_hold_so_much_is_numpys(monkeypatch):
    x = T(np.zeros((512, 1024), "float32"))
    paddle.set_flags({"FLAGS_cpu_memory_limit_mb": 1})
    try:
        assert F.gelu(x).shape == [512, 1024]
    finally:
        paddle.set_flags({"FLAGS_cpu_memory_limit_mb": None})


def test_verify_compares_with_numpy(monkeypatch):
    function = paddle.jit.to_static(lambda x: F.gelu(x), full_graph=True)
    function(T([1.0]))
    monkeypatch.setattr(native_ops, "_program_of", lambda *_: pytest.fail("an op ran native code"))
    assert paddle.jit.verify(function, T([0.5, 1.5]))


def test_small_draws_become_native_code_after_many_and_stay_the_same_numbers(monkeypatch):
    monkeypatch.setattr(current(), "process", replace(current().process, native_from=1 << 15))
    monkeypatch.setattr(native_ops, "_draws", {})
    monkeypatch.setattr(native_ops, "_MANY_DRAWS", 3)

    def drawn():
        paddle.seed(5)
        return [paddle.rand([2, 3]).tolist(), paddle.randint(0, 9, [4]).tolist(), paddle.randperm(5).tolist(),
                paddle.bernoulli(paddle.full([3], 0.5)).tolist(), paddle.randn([2]).tolist()]  # fmt: skip

    before = drawn()
    assert not native_ops._programs
    for _ in range(6):
        assert drawn() == before
    assert {key[0].name for key in native_ops._programs} >= {"random_uniform", "random_bernoulli"}
    assert "random_normal" not in {key[0].name for key in native_ops._programs}
