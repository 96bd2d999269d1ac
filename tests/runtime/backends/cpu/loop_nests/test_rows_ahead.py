"""The last sweep through a row, which writes what was kept, is the first one through the next row too."""

import re

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.runtime.backends.cpu.dump_stages import stage
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.static import InputSpec
from tests.runtime.backends.cpu.native import Guarded, runnable


def by_the_mean(x):
    y = paddle.exp(x - x.mean(-1, keepdim=True))
    return y * (1 / y.sum(-1, keepdim=True))


def two_sums(x):
    y = paddle.exp(x - x.max(-1, keepdim=True))
    return y - (y.sum(-1, keepdim=True) + (y * y).sum(-1, keepdim=True))


FUNCTIONS = {"softmax": lambda x: F.softmax(x, -1), "by the mean": by_the_mean, "two sums": two_sums}
SHAPES = [(1, 5), (2, 16), (3, 17), (0, 7), (4, 0), (5, 255), (3, 1025), (2, 3, 64), (3, 1, 20), (2, 0, 9)]


def program_of(f, rank, dtype="float32"):
    static = paddle.jit.to_static(f, input_spec=[InputSpec([-1] * rank, dtype, "x")], full_graph=True)
    return static.concrete_program.main_program


def runs_ahead(f):
    return re.search(r"^rows\d+:", stage(program_of(f, 2), "llvm"), re.MULTILINE) is not None


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_is_where_the_last_sweep_reads_no_operand(f):
    assert runs_ahead(f)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.log_softmax(x, -1),
        lambda x: F.layer_norm(x, [16]),
        lambda x: paddle.exp(x).sum(-1),
        lambda x: F.softmax(x, -1) + x,
        lambda x: (F.softmax(x, -1), F.softmax(x, -1).sum(0)),
    ],
    ids=["reads the row again", "norm", "one sweep", "reads it beside", "sums over rows"],
)
def test_it_is_nowhere_else(f):
    if f(paddle.zeros([2, 16])) is not None:
        assert not runs_ahead(f)


@pytest.mark.parametrize("target", ["avx512", "avx2", "sse", "scalar"])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_are_those_of_the_interpreter(f, target, monkeypatch):
    if not runnable(target):
        pytest.skip("this machine has no such vectors")
    monkeypatch.setenv("DY2ST_CPU", target)
    for rank in (2, 3):
        program = program_of(f, rank)
        native, plan = NativePlan(program), compile_plan(program)
        for shape in (s for s in SHAPES if len(s) == rank and (s[-1] or f is FUNCTIONS["softmax"])):
            for at_start in (True, False):
                x = Guarded(np.random.default_rng(1).normal(0, 3, shape).astype(np.float32), at_start).array
                np.testing.assert_allclose(native.run([x])[0], plan.run([x])[0], rtol=3e-6, atol=1e-30)


def test_what_is_not_a_number_stays_in_its_row():
    x = np.random.default_rng(2).normal(size=(7, 130)).astype(np.float32)
    x[2, 77], x[4, 129], x[6, 0] = np.nan, np.inf, -np.inf
    (y,) = NativePlan(program_of(FUNCTIONS["softmax"], 2)).run([x])
    np.testing.assert_array_equal(np.isnan(y).all(1), [False, False, True, False, True, False, False])
    np.testing.assert_array_equal(np.isnan(y).any(1), np.isnan(y).all(1))
    np.testing.assert_allclose(y[[0, 1, 3, 5, 6]].sum(1), 1, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1000, 257), (2, 500, 300)])
def test_threads_change_no_bit(shape):
    native = NativePlan(program_of(FUNCTIONS["softmax"], len(shape)))
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    found = []
    before = paddle.get_num_threads()
    try:
        for threads in (1, 2, 4):
            paddle.set_num_threads(threads)
            found.append(native.run([x])[0].copy())
    finally:
        paddle.set_num_threads(before)
    rows = (
        np.stack([native.run([row[None]])[0][0] for row in x.reshape(-1, *shape[1:])]) if len(shape) == 2 else found[0]
    )
    for other in (*found[1:], rows):
        np.testing.assert_array_equal(found[0], other)
