"""Products of matrices of whole numbers in native code: they wrap as NumPy's do."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ops.core.base import Sample
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.ops.test_registry import built
from tests.runtime.backends.cpu.native import TARGETS, runnable, thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, compare, program_of

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64")


def numbers(rng, shape, dtype):
    return rng.integers(-100, 100, size=shape).astype(dtype)


def check(x, y, transpose_x=False, transpose_y=False):
    attributes = {"transpose_x": transpose_x, "transpose_y": transpose_y}
    program = Program({"main": built(lookup("matmul"), Sample((x, y), attributes), symbolic=True)})
    native = NativePlan(program)
    assert list(native.host_calls) == []
    (found,), (wanted,) = native.run([x, y]), compile_plan(program).run([x, y])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size(dtype, rng, guarded):
    for size in SIZES:
        check(numbers(rng, (3, size), dtype), numbers(rng, (size, 5), dtype))
        check(numbers(rng, (2, 3), dtype), numbers(rng, (3, size), dtype))


@pytest.mark.parametrize("turned", [(True, False), (False, True), (True, True)])
def test_transposed_batches(turned, rng, guarded):
    x, y = numbers(rng, (2, 3, 4, 17), "int32"), numbers(rng, (2, 3, 17, 19), "int32")
    check(*(a.swapaxes(-1, -2).copy() if t else a for a, t in zip((x, y), turned)), *turned)


def test_one_matrix_for_a_batch(rng):
    x, y = numbers(rng, (4, 2, 3), "int64"), numbers(rng, (3, 5), "int64")
    program = program_of(lambda x, y: paddle.matmul(x, y), x, y)
    compare(NativePlan(program).run([x, y]), compile_plan(program).run([x, y]))


def test_every_cpu(rng, monkeypatch):
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        check(numbers(rng, (5, 33), "int32"), numbers(rng, (33, 35), "int32"))


def test_inner_extents_that_differ_are_refused_as_by_the_op(rng):
    x = numbers(rng, (2, 3), "int64")
    program = Program({"main": built(lookup("matmul"), Sample((x, x.T), {"transpose_x": False, "transpose_y": False}),
                                     symbolic=True)})  # fmt: skip
    with pytest.raises(ValueError, match="matmul"):
        NativePlan(program).run([x, x])


def test_any_number_of_threads_gives_the_same(rng):
    x = numbers(rng, (300, 300), "int32")
    for _ in thread_counts():
        check(x, x)
