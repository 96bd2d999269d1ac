"""Loop nests that are split between threads: the same bits for any number of threads, and the interpreter's values."""

from functools import partial

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.jit.tracing.output_choices import NO_OTHER
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.in_threads import in_threads
from tests.runtime.backends.cpu.native import runnable

NESTS = {
    "elementwise": lambda x: paddle.tanh(x * 2 + 1),
    "several results": lambda x: (x + 1, paddle.exp(-x * x), x > 0),
    "sum of all": lambda x: paddle.tanh(x).sum(),
    "mean and what follows": lambda x: x / paddle.sqrt((x * x).mean() + 1e-5),
    "extrema of all": lambda x: (x.max(), x.min(), (x - x.max()).sum()),
    "all and any": lambda x: ((x < 9).all(), (x > 3).any(), (x > 9).any()),
    "sums of rows": lambda x: (x.sum(axis=-1), (x * x).mean(axis=-1)),
    "softmax": lambda x: F.softmax(x, axis=-1),
    "layer_norm and gelu": lambda x: F.gelu(F.layer_norm(x, [x.shape[-1]])),
    "rows broadcast": lambda x: F.relu(x + x[0]),
    "columns": lambda x: (x * x).sum(axis=0),
    "columns and what becomes of them": lambda x: (x.mean(axis=0), x.max(axis=0), x.min(axis=0), (x > 0).sum(axis=0)),
    "rows and columns": lambda x: (lambda y: (y, y.sum(axis=0)))(F.softmax(x, axis=-1) * x),
    "transposed": lambda x: paddle.tanh(x.transpose([1, 0])) + 1,
    "turned": lambda x: paddle.reshape(x.transpose([1, 0]), [-1]),
    "sorted rows": lambda x: (paddle.sort(x, axis=1), *paddle.topk(x, 1, axis=1), paddle.argsort(x, axis=0)),
    "running sums": lambda x: paddle.cumsum(x, axis=1),
    "counts": lambda x: (x > 0).sum(),
}
NOT_EMPTY = ("extrema of all", "rows broadcast", "columns and what becomes of them", "sorted rows")
SHAPES = [(0, 5), (1, 1), (3, 17), (700, 96), (2, 30000), (30000, 2), (1, 70001)]


def _native(f, shape):
    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(paddle.zeros(shape))
    program = static.concrete_program.main_program
    return NativePlan(program), compile_plan(program)


@pytest.mark.parametrize("name", NESTS)
def test_any_number_of_threads_gives_the_same_bits(name, rng):
    native, plan = _native(NESTS[name], [2, 3])
    for shape in SHAPES:
        if 0 in shape and name in NOT_EMPTY:
            continue
        x = rng.normal(size=shape).astype("float32")
        want = plan.run([x])
        made = []
        for count in (1, 2, 4):
            paddle.set_num_threads(count)
            made.append(native.run([x]))
        for results in zip(want, *made, strict=True):
            np.testing.assert_allclose(results[1], results[0], rtol=2e-5, atol=2e-4)
            assert all(np.array_equal(results[1], other, equal_nan=True) for other in results[2:])


@pytest.mark.parametrize("cpu", ["avx2", "sse", "scalar"])
@pytest.mark.parametrize("name", ["mean and what follows", "rows and columns"])
def test_other_cpus_split_too(name, cpu, rng, monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", cpu)
    if not runnable(cpu):
        pytest.skip(f"this CPU has no {cpu}")
    native, plan = _native(NESTS[name], [2, 3])
    x = rng.normal(size=(700, 96)).astype("float32")
    paddle.set_num_threads(1)
    alone = native.run([x])
    paddle.set_num_threads(3)
    for one, three, want in zip(alone, native.run([x]), plan.run([x]), strict=True):
        np.testing.assert_array_equal(three, one)
        np.testing.assert_allclose(one, want, rtol=2e-5, atol=2e-4)


def test_a_sum_of_blocks_hands_nan_on(rng):
    native, _ = _native(lambda x: (x.max(), x.sum(), x.mean()), [2, 3])
    paddle.set_num_threads(3)
    x = rng.normal(size=(500, 500)).astype("float32")
    x[432, 17] = np.nan
    assert all(np.isnan(value) for value in native.run([x]))


@pytest.mark.parametrize("shape", [(5, 1, 7000), (1, 9000, 4), (300, 2, 90), (2, 2, 20000)])
def test_the_longest_outer_axis_is_split(shape, rng):
    native, plan = _native(lambda x: F.softmax(x, axis=-1), [2, 3, 4])
    x = rng.normal(size=shape).astype("float32")
    paddle.set_num_threads(1)
    (alone,) = native.run([x])
    paddle.set_num_threads(3)
    np.testing.assert_array_equal(native.run([x])[0], alone)
    np.testing.assert_allclose(alone, plan.run([x])[0], rtol=1e-5, atol=1e-6)


def test_a_tensor_that_is_written_in_place(rng):
    def f(x, n):
        i = 0
        while i < n:
            x = paddle.tanh(x) * 1.5
            i += 1
        return x

    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(paddle.zeros([2, 3]), paddle.to_tensor(2))
    native = NativePlan(static.concrete_program.main_program)
    x, n = rng.normal(size=(400, 300)).astype("float32"), np.array(20)
    paddle.set_num_threads(1)
    alone, told = native.run([x, n])
    assert told == NO_OTHER
    paddle.set_num_threads(3)
    np.testing.assert_array_equal(native.run([x, n])[0], alone)


@pytest.mark.parametrize("shape", [(5, 700, 60), (900, 30, 20), (2, 3, 40000)])
def test_a_loop_that_broadcasts_and_reduces_what_it_carries(shape, rng):
    def f(x, s, n):
        i = 0
        while i < n:
            x = x * 0.5 + s.mean(axis=-1).mean(axis=0)
            s = paddle.exp(-s * s) + x.unsqueeze(-1)
            i += 1
        return x, s

    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(paddle.zeros([3]), paddle.zeros([2, 3, 4]), paddle.to_tensor(2))
    program = static.concrete_program.main_program
    native, plan = NativePlan(program), compile_plan(program)
    inputs = [rng.normal(size=shape[1]).astype("float32"), rng.normal(size=shape).astype("float32"), np.array(4)]
    paddle.set_num_threads(1)
    alone = native.run(inputs)
    paddle.set_num_threads(4)
    for one, four, want in zip(alone, native.run(inputs), plan.run(inputs), strict=True):
        np.testing.assert_array_equal(four, one)
        np.testing.assert_allclose(one, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("calls", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_python_threads_run_at_once_and_give_the_same_bits(calls, rng):
    native, _ = _native(lambda x: F.softmax(x, axis=-1).sum(axis=0), [2, 3])
    paddle.set_num_threads(3)
    inputs = [rng.normal(size=(40 * n, 100)).astype("float32") for n in range(1, 9)]
    want = [native.run([x])[0] for x in inputs]
    wrong = []

    def work(k):
        for _ in range(calls):
            if not np.array_equal(native.run([inputs[k]])[0], want[k]):
                wrong.append(k)

    in_threads(*(partial(work, k) for k in range(8)))
    assert wrong == []
