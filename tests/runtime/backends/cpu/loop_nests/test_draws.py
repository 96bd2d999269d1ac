"""Random whole numbers, choices, permutations and exponentials as native code: the bits of the ops."""

import numpy as np
import pytest

from dy2st.dtypes import dtype as named
from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import INT, TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import runnable

SEEDS = [(7, 3), (2**63 - 1, 2**40 + 5)]
COUNTS = [0, 1, 15, 16, 17, 1000]


def plans(name, types, attributes):
    b = Builder()
    b.block.results = [b.emit(name, [b.argument(t) for t in types], attributes)]
    program = Program({"main": b.block})
    native = NativePlan(program)
    assert all(call.rare for call in native.host_calls)
    return native, compile_plan(program)


def check(native, plan, *given):
    found, wanted = native.run(list(given))[0], plan.run(list(given))[0]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
def test_whole_numbers(dtype):
    native, plan = plans("random_int", [INT] * 5, {"shape": (None,), "dtype": named(dtype)})
    for seed, draw in SEEDS:
        for low, high in ((0, 10), (-5, 6), (3, 4), (0, 200)):
            for count in COUNTS:
                if low >= 0 or dtype != "uint8":
                    check(native, plan, seed, draw, low, high, count)
    check(native, plan, 1, 2, -(2**62) * (dtype == "int64"), 2**62 if dtype == "int64" else 9, 40)
    with pytest.raises(ValueError, match="random integers need low < high, not 3 and 3"):
        native.run([1, 2, 3, 3, 4])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_choices(dtype, rng):
    for shape in [(), (17,), (3, 0), (5, 33)]:
        p = rng.uniform(size=shape).astype(dtype)
        check(*plans("random_bernoulli", [INT, INT, TensorType(of_array(p), shape)], {}), 7, 3, p)


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_permutations(dtype):
    native, plan = plans("random_permutation", [INT] * 3, {"dtype": named(dtype)})
    for seed, draw in SEEDS:
        for count in COUNTS:
            check(native, plan, seed, draw, count)


@pytest.mark.parametrize("cpu", ["", "avx2", "sse", "scalar"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponentials(dtype, cpu, monkeypatch):
    if cpu and not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    monkeypatch.setenv("DY2ST_CPU", cpu)
    native, plan = plans("random_exponential", [INT] * 3, {"shape": (2, None), "dtype": named(dtype)})
    for count in COUNTS:
        found, wanted = native.run([7, 3, count])[0], plan.run([7, 3, count])[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == "float32" else 1e-15)
