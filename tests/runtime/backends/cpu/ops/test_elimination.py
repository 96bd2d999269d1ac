"""`lu` in native code: the bits of `eval` on batches of every size, NaN, zeros, CPU and number of threads."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, compare, plans, program_of


def lu(x):
    return paddle.linalg.lu(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices_of_every_size(dtype, rng, guarded):
    native, plan = plans(lu, rng.normal(size=(2, 4, 3)).astype(dtype))
    for shape in [(2, n, n) for n in SIZES[:-1]] + [(1, 255, 3), (3, 2, 17), (0, 3, 3), (2, 0, 3), (2, 3, 0)]:
        x = rng.normal(size=shape).astype(dtype)
        compare(native.run([x]), plan.run([x]), exact=True)
    assert native.elsewhere == 0


@pytest.mark.parametrize("special", [np.nan, np.inf, 0.0, -0.0])
def test_numbers_that_are_not_finite_and_columns_of_zeros(special, rng):
    native, plan = plans(lu, rng.normal(size=(2, 4, 4)))
    x = rng.normal(size=(8, 5, 5))
    for i in range(4):
        x[i, i, :] = special
        x[i + 4, :, i] = special
    x[0, 1, 1] = np.nan
    with np.errstate(all="ignore"):
        compare(native.run([x]), plan.run([x]), exact=True)


def test_views_and_one_matrix(rng):
    native, plan = plans(lu, rng.normal(size=(4, 4)))
    x = rng.normal(size=(9, 12))[::2, 1::2]
    compare(native.run([x]), plan.run([x]), exact=True)


def test_every_cpu(rng, monkeypatch):
    x = rng.normal(size=(2, 17, 5)).astype("float32")
    program = program_of(lu, x)
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        compare(NativePlan(program).run([x]), compile_plan(program).run([x]), exact=True)


def test_any_number_of_threads(rng):
    x = rng.normal(size=(500, 12, 12))
    native, plan = plans(lu, x)
    for _ in thread_counts():
        compare(native.run([x]), plan.run([x]), exact=True)
