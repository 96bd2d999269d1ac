"""Strict native code: functions right to one unit in the last place, the same bits on every CPU and any threads."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import config
from dy2st.runtime.backends.cpu.compile_link.code_loader import assembly, rounded_apart
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.libm import load_formulas, strict_function
from dy2st.runtime.backends.cpu.libm.core.registry import EXACT
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.accuracy import BINARY, BY_MPMATH, IN_FLOAT64, UNARY, numbers, pairs, within
from tests.runtime.backends.cpu.native import DTYPES, mapped, runnable, thread_counts, ulps

CPUS = [cpu for cpu in ("avx512", "avx2", "sse", "scalar") if runnable(cpu)]


def operands(name, dtype):
    if name in BINARY:
        return pairs(DTYPES[dtype], 400)
    x = numbers(DTYPES[dtype], 2000)
    return (within(name, x)[::20] if name in BY_MPMATH and dtype == "f64" else x,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(load_formulas()))
def test_functions_are_right_to_one_unit_in_the_last_place(name, dtype):
    given = operands(name, dtype)
    references = {**UNARY, **BINARY, **(IN_FLOAT64 if dtype == "f32" else BY_MPMATH)}
    exact = name in EXACT and name in BINARY
    kind = DTYPES[dtype] if exact else float if name in IN_FLOAT64 else np.longdouble
    with np.errstate(all="ignore"):
        wanted = references[name](*(x.astype(kind) for x in given)).astype(np.longdouble)
    found = mapped(strict_function(name, dtype, 4), dtype, 4, len(given))(*given)
    assert ulps(found, wanted).max() <= 1


def test_products_and_sums_round_apart():
    assert "fmuladd" not in rounded_apart("%r = call double @llvm.fmuladd.f64(double %x, double 0x0, double %z)")
    text = "define <8 x float> @f(<8 x float> %x) {\n  %r = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %x, " \
        "<8 x float> splat (float 2.5), <8 x float> %x)\n  ret <8 x float> %r\n}\n" \
        "declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)"  # fmt: skip
    assert "vfmadd" not in assembly(text, current_target(strict=True))


def work(x, y, w):
    h = paddle.tanh(x @ w) + paddle.nn.functional.gelu(x @ w) - paddle.exp(-y.abs()).sum(axis=0)
    s = paddle.nn.functional.softmax(h * 3.0)
    n = paddle.nn.functional.layer_norm(h, h.shape[-1:])
    k = paddle.nn.functional.conv2d(y.reshape([1, 1, 7, 45]), w.reshape([-1])[:27].reshape([3, 1, 3, 3]), padding=1)
    r = paddle.linalg.norm(h) + h.mean(axis=1).prod() + paddle.cumsum(h, 1).max() + paddle.rand([3]).sum()
    return h, s, n, k, r, s.sum(axis=0), (h * s).sum(), x.std(), paddle.sin(y).mean(), paddle.matmul(h, s, False, True)


def bits(cpu, monkeypatch, dtype):
    monkeypatch.setenv("DY2ST_CPU", cpu)
    rng = np.random.default_rng(3)
    inputs = [rng.normal(size=s).astype(dtype) for s in ((7, 63), (7, 45), (63, 45))]
    static = paddle.jit.to_static(work, full_graph=True, strict=True)
    paddle.seed(11)
    static(*map(paddle.to_tensor, inputs))
    program = static.concrete_program.main_program
    given = [*inputs, *([11, 0] if len(program.block.arguments) > 3 else [])]
    return [np.asarray(r) for r in NativePlan(program, strict=True).run(given)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_cpu_gives_the_same_bits(dtype, monkeypatch):
    first, *others = (bits(cpu, monkeypatch, dtype) for cpu in CPUS)
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_number_of_threads_gives_the_same_bits(dtype, rng):
    def f(x, w):
        return (x @ w).sum(axis=0), paddle.exp(x).sum(), paddle.tanh(x).mean(axis=1), x.sum(axis=0), x @ w

    x, w = rng.normal(size=(700, 300)).astype(dtype), rng.normal(size=(300, 200)).astype(dtype)
    static = paddle.jit.to_static(f, full_graph=True, strict=True)
    static(paddle.to_tensor(x), paddle.to_tensor(w))
    native = NativePlan(static.concrete_program.main_program, strict=True)
    found = [[np.asarray(r).tobytes() for r in native.run([x, w])] for _ in thread_counts(1, 2, 3, 4)]
    assert all(other == found[0] for other in found)


def test_a_strict_function_runs_natively_from_the_first_call_on(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    x = np.linspace(-3, 3, 1000)
    static = paddle.jit.to_static(lambda x: paddle.sin(paddle.exp(x) + paddle.tanh(x)), strict=True)
    first, second = (static(paddle.to_tensor(x)).numpy() for _ in range(2))
    (native,) = NativePlan(static.concrete_program.main_program, strict=True).run([x])
    assert first.tobytes() == second.tobytes() == native.tobytes()
    assert native.tobytes() != np.sin(np.exp(x) + np.tanh(x)).tobytes()


def test_a_build_strategy_asks_for_it_too():
    strategy = paddle.static.BuildStrategy()
    strategy.strict = True
    assert paddle.jit.to_static(lambda x: x, build_strategy=strategy).strict
    assert not paddle.jit.to_static(lambda x: x, build_strategy=paddle.static.BuildStrategy()).strict


@pytest.mark.parametrize(("value", "wanted"), [("1", True), ("0", False), ("", False)])
def test_the_environment_asks_for_it_too(value, wanted, monkeypatch):
    monkeypatch.setenv("DY2ST_STRICT", value)
    assert config.is_strict() is wanted
