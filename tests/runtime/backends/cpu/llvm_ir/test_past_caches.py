"""Large results are written past the caches: the same values, whatever rows begin at."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.runtime.backends.cpu.dump_stages import stage
from dy2st.runtime.backends.cpu.llvm_ir.non_temporal_stores import LARGE
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.static import InputSpec
from tests.runtime.backends.cpu.native import runnable

PLACES = LARGE // 4
SHAPES = [(1024, PLACES // 1024), (PLACES // 1001, 1003), (1, PLACES + 5), (1024, PLACES // 1024 - 1)]
"""Rows of whole vectors, of odd length, alone; and a result that is a little too small."""
FUNCTIONS = {
    "elements": lambda x: x * 2 + 1,
    "rows": lambda x: F.relu(x) - x.max(axis=-1, keepdim=True),
    "bytes beside": lambda x: (x > 0, x - 1),
}


def _program(f, shape=(-1, -1)):
    static = paddle.jit.to_static(f, input_spec=[InputSpec(shape, "float32", "x")], full_graph=True)
    return static.concrete_program.main_program


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_are_those_of_the_interpreter(f, shape):
    program = _program(f)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for mine, expected in zip(NativePlan(program).run([x]), compile_plan(program).run([x]), strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_what_is_read_may_stand_where_it_is_written():
    @paddle.jit.to_static(full_graph=True)
    def step(x):
        x.add_(paddle.ones_like(x))

    x = paddle.zeros([PLACES // 512, 512])
    with paddle.no_grad():
        for _ in range(3):
            step(x)
    assert bool((x == 3.0).all())


@pytest.mark.parametrize("target", ["avx512", "avx2", "sse", "scalar"])
def test_vectors_of_32_bytes_or_more_pass(target, monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", target)
    if not runnable(target):
        pytest.skip("this machine has no such vectors")
    text = stage(_program(FUNCTIONS["elements"]), "llvm")
    assert ("!nontemporal" in text) == (target in ("avx512", "avx2"))
    assert ("fence seq_cst" in text) == ("!nontemporal" in text)


def test_small_results_stay_in_the_caches():
    assert "!nontemporal" not in stage(_program(FUNCTIONS["elements"], (4, 7)), "llvm")
