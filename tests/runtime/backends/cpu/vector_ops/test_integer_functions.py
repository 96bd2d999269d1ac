"""Functions of whole numbers as native code: NumPy's numbers for all pairs of edges, in vectors and in registers."""

import numpy as np
import pytest

from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.vector_ops.integer_functions import FUNCTIONS
from dy2st.runtime.interpreter.planned import compile_plan

DTYPES = ("int8", "uint8", "int16", "int32", "int64")


def pairs(dtype):
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, -17, -9, -8, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 9, 31, 33, 64, limits.max]
    numbers = np.array([n for n in edges if limits.min <= n <= limits.max], dtype)
    return np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)


def program(name, x, y):
    b = Builder()
    operands = [b.argument(TensorType(of_array(a), a.shape)) for a in (x, y)]
    b.block.results = [b.emit(name, operands, {})]
    return Program({"main": b.block})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_pairs_of_edges(name, dtype):
    x, y = pairs(dtype)
    p = program(name, x, y)
    plan = NativePlan(p)
    assert plan.host_calls == []
    np.testing.assert_array_equal(plan.run([x, y])[0], compile_plan(p).run([x, y])[0])


@pytest.mark.parametrize("cpu", ["avx2", "sse", "scalar"])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_lesser_cpus(name, cpu, monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", cpu)
    x, y = pairs("int32")
    p = program(name, x, y)
    np.testing.assert_array_equal(NativePlan(p).run([x, y])[0], compile_plan(p).run([x, y])[0])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_rank_zero(name):
    x, y = np.array(-7), np.array(3)
    p = program(name, x, y)
    assert NativePlan(p).run([x, y])[0] == compile_plan(p).run([x, y])[0]


@pytest.mark.parametrize("into", DTYPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_become_whole_numbers(dtype, into):
    limits = np.iinfo(into)
    x = np.array([0.9, -0.9, 1.5, -1.5, limits.max // 2, 100.7, 127.0, *([-100.2] if limits.min else [])] * 3, dtype)
    b = Builder()
    b.block.results = [b.cast(b.argument(TensorType(of_array(x), x.shape)), dtype=of_array(np.zeros(1, into)))]
    p = Program({"main": b.block})
    np.testing.assert_array_equal(NativePlan(p).run([x])[0], compile_plan(p).run([x])[0])
