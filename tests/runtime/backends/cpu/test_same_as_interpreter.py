"""Native code against the interpreter: every op on its samples, forced CPUs, edges of rows, memory around buffers."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import INT
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.ops.test_registry import built, cases
from tests.runtime.backends.cpu.native import Guarded, runnable

SIZES = (0, 1, 2, 15, 16, 17, 255)


def compare(a, b, exact=False):
    if isinstance(b, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if exact or b.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b)
        else:
            single = b.dtype.itemsize * (2 if b.dtype.kind == "f" else 1) <= 8
            np.testing.assert_allclose(a, b, rtol=2e-5 if single else 1e-12, atol=1e-6 if single else 1e-13)
    elif isinstance(b, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            compare(x, y)
    else:
        assert a == b
        assert type(a) is type(b)


def program_of(f, *inputs):
    static = paddle.jit.to_static(f, full_graph=True)
    static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def plans(function, *inputs):
    """Return native code that needs no Python, and what runs the same Program on the interpreter."""
    program = program_of(function, *inputs)
    native = NativePlan(program)
    assert [call.name for call in native.host_calls if not call.rare] == []
    return native, compile_plan(program)


@pytest.mark.parametrize(("op", "sample"), cases())
@pytest.mark.parametrize("symbolic", [True, False], ids=["symbolic", "known"])
def test_every_op(op, sample, symbolic, guarded):
    program = Program({"main": built(op, sample, symbolic)})
    operands = [x.copy() if isinstance(x, np.ndarray) else x for x in sample.operands]
    native = NativePlan(program)
    compare(native.run(operands), compile_plan(program).run(operands))
    held = native.peak
    for _ in range(2):
        native.run(operands)
    assert native.peak == held, "blocks of memory are not given back"


def chain(x, y, b):
    h = paddle.tanh(x * y + b) - x.abs()
    e = paddle.exp(h - h.max(axis=1, keepdim=True))
    s = e / e.sum(axis=1, keepdim=True)
    return h, s, s.sum(axis=0), (h * h).mean(), (h > 0).astype("int32").sum(axis=0), paddle.where(h > 0, h, s)


@pytest.mark.parametrize("cpu", ["avx512", "avx2", "sse", "scalar"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_on_every_cpu_and_row_length(cpu, dtype, monkeypatch, rng):
    if not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    monkeypatch.setenv("DY2ST_CPU", cpu)
    program = program_of(chain, *(rng.normal(size=s).astype(dtype) for s in ((3, 4), (3, 4), (4,))))
    native, plan = NativePlan(program), compile_plan(program)
    for length in SIZES[1:]:
        inputs = [rng.normal(size=s).astype(dtype) for s in ((3, length), (3, length), (length,))]
        compare(native.run(inputs), plan.run(inputs))


@pytest.mark.parametrize("length", SIZES)
def test_nothing_is_read_behind_an_input(length, rng):
    def f(x, b, i):
        y = paddle.tanh(x).sum(axis=1)  # several vectors at a time, then one
        return (
            y,
            x + b,
            x.sum(axis=1),
            x.sum(axis=0),
            x[:, ::2] * 2,
            x.transpose([1, 0]) + 1,
            paddle.concat([x, x]),
            x[i],
        )

    program = program_of(f, *(rng.normal(size=s).astype("float32") for s in ((5, 4), (4,))), np.array([0, 2]))
    native, plan = NativePlan(program), compile_plan(program)
    inputs = [rng.normal(size=s).astype("float32") for s in ((5, length), (length,))] + [np.array([1, -1, 0])]
    compare(native.run([Guarded(x).array for x in inputs]), plan.run(inputs))


def test_special_values_are_numpys():
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -3e38, 1.0], "float32")
    x, y = (a.ravel().astype("float32") for a in np.meshgrid(special, special))

    def f(x, y):
        return x + y, x * y, x / y, paddle.maximum(x, y), paddle.minimum(x, y), x < y, x == y, x.sign(), paddle.exp(x)

    program = program_of(f, x, y)
    compare(NativePlan(program).run([x, y]), compile_plan(program).run([x, y]))


@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_that_do_not_lie_together(order, rng):
    program = program_of(lambda x: x * 2 + 1, rng.normal(size=(4, 6)))
    x = np.asarray(rng.normal(size=(8, 12)), order=order)[::2, 1::2]
    compare(NativePlan(program).run([x]), compile_plan(program).run([x]))


def test_ints_of_more_than_64_bits_go_to_the_interpreter():
    b = Builder()
    x = b.argument(INT)
    b.block.results = [b.scalar_mul(x, x)]
    native = NativePlan(Program({"main": b.block}))
    assert native.run([3]) == [9]
    assert native.run([2**40]) == [2**80]
    assert native.run([2**70]) == [2**140]


def test_workloads_need_no_call_into_python():
    def newton(a):
        x, change = a * 0.5 + 0.5, paddle.ones([])
        while change > 1e-6:
            y = 0.5 * (x + a / x)
            change = (y - x).abs().max()
            x = y
        return paddle.nn.functional.softmax(x.reshape([2, -1]))

    native = NativePlan(program_of(newton, np.arange(1.0, 9.0, dtype="float32")))
    assert [call.name for call in native.host_calls] == []


def test_a_long_sum_keeps_its_digits():
    program = program_of(lambda x: (x.sum(), x.mean()), np.ones(3, "float32"))
    x = np.full(3_000_001, 0.1, "float32")
    total, mean = NativePlan(program).run([x])
    np.testing.assert_allclose(total, x.sum(dtype="float64"), rtol=2e-6)
    np.testing.assert_allclose(mean, x.mean(dtype="float64"), rtol=2e-6)
    x[5] = np.inf
    assert NativePlan(program).run([x])[0] == np.inf
