"""Code that is made in a hurry: the same bits as code that is as good as it gets, which takes its place."""

import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.program import Program
from dy2st.nn import functional as F
from dy2st.runtime.aot_cache.artifacts import cached
from dy2st.runtime.backends.cpu import compile, native_executable
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.opt_level import haste_of_library
from dy2st.runtime.backends.cpu.shape_specialization import native_code
from dy2st.runtime.interpreter.cost_model import bindings
from tests.ops.test_registry import built, cases
from tests.runtime.backends.cpu.native import runnable


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))


def program_of(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def bits(results):
    return [x.tobytes() if isinstance(x, np.ndarray) else repr(x) for x in results]


def products(x, w):
    return x @ w, x @ w.t(), x.t() @ w, F.softmax(x @ w, -1), F.gelu(x * w), F.layer_norm(x, x.shape[-1:])


def windows(x, w):
    k = w[:3, :6].reshape([2, 1, 3, 3])
    return F.conv2d(x.reshape([1, 1, 16, 16]), k, padding=1), F.max_pool2d(x.reshape([1, 1, 16, 16]), 2)


def recurrent(x, w):
    h, kept_steps = x[0], []
    for i in range(x.shape[0]):
        h = paddle.tanh(h @ w + x[i])
        kept_steps.append(h)
    while h.abs().sum() < 50:
        h = h * 1.5 + paddle.sin(h)
    return h, paddle.stack(kept_steps), paddle.rand([7])


@pytest.mark.parametrize("cpu", ["avx512", "avx2", "sse", "scalar"])
@pytest.mark.parametrize("function", [products, windows, recurrent])
def test_bits_are_the_same_before_and_after(function, cpu, monkeypatch, rng):
    if not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    monkeypatch.setenv("DY2ST_CPU", cpu)
    x, w = (rng.normal(size=(16, 16)).astype("float32") for _ in range(2))
    program = program_of(function, x, w)
    state = [v for v in program.block.arguments if v.name not in ("x", "w")]
    inputs = [x, w, *([0] * len(state))]
    plan = NativePlan(program, quick=True, haste="all")
    assert plan.is_quick
    before = bits(plan.run(inputs))
    plan.improve()
    assert not plan.is_quick
    assert bits(plan.run(inputs)) == before


@pytest.mark.slow
@pytest.mark.parametrize(("op", "sample"), cases())
def test_bits_of_every_op_are_the_same(op, sample):
    plan = NativePlan(Program({"main": built(op, sample, True)}), quick=True, haste="all")
    operands = [[x.copy() if isinstance(x, np.ndarray) else x for x in sample.operands] for _ in range(2)]
    before = plan.run(operands[0])
    plan.improve()
    for a, b in zip(before, plan.run(operands[1]), strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert repr(a) == repr(b)


@pytest.mark.slow
def test_what_was_made_in_a_hurry_is_kept_until_there_is_better(rng):
    x, w = (rng.normal(size=(16, 16)).astype("float32") for _ in range(2))
    program = program_of(products, x, w)
    first = native_code(program, [x, w], quick=True)
    again = native_code(program, [x, w], quick=True)
    assert (first.is_quick, again.is_quick) == (True, True)
    assert [plan.was_cached for plan in again.plans] == [True]
    again.improve()
    last = native_code(program, [x, w], quick=True)
    assert not last.is_quick
    assert [plan.was_cached for plan in last.plans] == [True]
    assert bits(last.run([x, w])) == bits(first.run([x, w]))


def test_versions_made_later_are_made_well_at_once():
    program = program_of(lambda x, y: paddle.exp(x + y), np.ones((2, 3), "float32"), np.ones((2, 3), "float32"))
    versions = native_code(program, [np.ones((2, 3), "float32"), np.ones((2, 3), "float32")], quick=True)
    versions.improve()
    made = versions.run([np.ones((2, 3), "float32"), np.ones((1, 3), "float32")])
    np.testing.assert_allclose(made[0], np.exp(np.full((2, 3), 2, "float32")), rtol=1e-6)
    assert len(versions.plans) == 2
    assert not versions.is_quick


def test_threads_run_while_code_takes_the_place_of_another(rng):
    x, w = (rng.normal(size=(16, 16)).astype("float32") for _ in range(2))
    plan = NativePlan(program_of(products, x, w), quick=True, haste="all")
    want, wrong, improved = bits(plan.run([x, w])), [], threading.Event()

    def work():
        while not improved.is_set():
            if bits(plan.run([x, w])) != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    plan.improve()
    improved.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert bits(plan.run([x, w])) == want


def test_glue_of_loops_over_numbers_is_never_made_in_a_hurry(monkeypatch, rng):
    def counting(n, i):
        while i < n:
            i = i + 1 if i % 3 > 0 else i + 2
        return i

    levels = []
    compiled = compile.made_object
    monkeypatch.setattr(compile, "made_object", lambda *given: levels.append(given[2]) or compiled(*given))
    NativePlan(program_of(counting, np.array(9), np.array(0)), quick=True)
    NativePlan(program_of(recurrent, *(rng.normal(size=(16, 16)).astype("float32") for _ in range(2))), quick=True)
    assert levels == [1, 0]


def test_long_glue_is_made_at_level_0_for_good(monkeypatch, tmp_path, rng):
    levels = []
    compiled = compile.made_object
    monkeypatch.setattr(compile, "made_object", lambda *given: levels.append(given[2]) or compiled(*given))
    x, w = (rng.normal(size=(16, 16)).astype("float32") for _ in range(2))
    made = []
    for most in (compile._LONG, 0):
        monkeypatch.setattr(compile, "_LONG", most)
        monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / str(most)))
        made.append(bits(NativePlan(program_of(recurrent, x, w)).run([x, w, 0, 0])))
    assert levels == [1, 0]
    assert made[0] == made[1]


@pytest.mark.parametrize(("rows", "large"), [(4, False), (4096, True)])
def test_inner_loops_of_large_products_in_loops_are_never_made_in_a_hurry(rows, large, monkeypatch, rng):
    hastes = []
    address = native_executable.runtime_library_symbols.address
    monkeypatch.setattr(
        native_executable.runtime_library_symbols,
        "address",
        lambda *given, **how: hastes.append(how["haste"]) or address(*given, **how),
    )
    x, w = rng.normal(size=(rows, 32)).astype("float32"), np.eye(32, dtype="float32")

    def repeated(x, w):
        while (x @ w).abs().sum() < 1:
            x = x * 2
        return x

    native_code(program_of(repeated, x, w), [x, w], quick=True)
    assert set(hastes) == {"outer" if large else "all"}


@pytest.mark.parametrize(("rows", "turns", "haste"), [(256, 2, "all"), (1024, 1, "all"), (1024, 2, "outer")])
def test_inner_loops_of_many_multiplications_are_never_made_in_a_hurry(rows, turns, haste):
    x, w = np.zeros((rows, 512), "float32"), np.zeros((512, 512), "float32")

    def products(x, w):
        for _ in range(turns):
            x = x @ w
        return x

    program = program_of(products, x, w)
    assert haste_of_library(program, bindings(program, [x, w]) or {}) == haste


def test_without_a_recipe_nothing_is_kept():
    assert cached(None) is None


@pytest.mark.parametrize(("cpus", "threads"), [(1, 1), (2, 1), (8, 4)])
def test_better_code_is_made_by_half_of_the_cpus(cpus, threads, monkeypatch, rng):
    x, w = (rng.normal(size=(16, 16)).astype(np.float32) for _ in range(2))
    plan = NativePlan(program_of(products, x, w), quick=True)
    counts, right = [], compile.together

    def noted(functions, count):
        counts.append(count)
        return right(functions, count)

    monkeypatch.setattr(compile, "usable_cpus", lambda: cpus)
    monkeypatch.setattr(compile, "together", noted)
    plan.improve()
    assert counts == [threads]
