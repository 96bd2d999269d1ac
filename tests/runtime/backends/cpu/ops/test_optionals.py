"""Tangents that may be missing: native code makes the zeros itself."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType, optional
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.shapes import symbol

N = symbol("n")
SHAPES = {(N, 3): (5, 3), (2, 3): (2, 3), (): (), (40,): (40,), (0, N): (0, 4), (N,): (17,)}


def program_of(dtype, shape, turned=False):
    """Return a Program of an optional and a tensor like it, whose axes may be permuted first."""
    b = Builder()
    like = b.argument(TensorType(dtype, shape))
    if turned:
        like = b.operation(lookup("transpose"), [like], {"perm": tuple(reversed(range(len(shape))))}).results[0]
    missing = b.argument(optional(like.type))
    made = b.operation(lookup("variant_or_zeros"), [missing, like], {"tag": 1}).results[0]
    b.block.results = [made, b.add(made, made)]
    return Program({"main": b.block})


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("there", [True, False])
def test_a_payload_or_zeros(dtype, shape, there):
    program = program_of(dtype, shape)
    native = NativePlan(program)
    assert [note.name for note in native.host_calls] == []
    like = np.full(SHAPES[shape], 7, dtype.numpy)
    given = (1, like + np.arange(like.size, dtype=dtype.numpy).reshape(like.shape)) if there else (0, None)
    want = compile_plan(program).run([like, given])
    for _ in range(2):
        for got, expected in zip(native.run([like, given]), want, strict=True):
            assert got.dtype == expected.dtype
            assert np.array_equal(got, expected)
            assert got.shape == expected.shape
    assert not np.any(native.run([like, (0, None)])[0])


def test_zeros_have_the_extents_of_a_view():
    program = program_of(dtypes.float32, (N, 3), turned=True)
    (made, _), like = NativePlan(program).run([np.ones((5, 3), "float32"), (0, None)]), (3, 5)
    assert made.tolist() == np.zeros(like).tolist()


def test_zeros_like_an_optional_are_unset():
    b = Builder()
    given = b.argument(optional(TensorType(dtypes.float32, (N,))))
    made = b.operation(lookup("zeros_like"), [given], {}).results[0]
    like = b.argument(TensorType(dtypes.float32, (N,)))
    b.block.results = [b.operation(lookup("variant_or_zeros"), [made, like], {"tag": 1}).results[0]]
    program = Program({"main": b.block})
    inputs = [(1, np.ones(3, "float32")), np.ones(3, "float32")]
    (found,), (wanted,) = NativePlan(program).run(inputs), compile_plan(program).run(inputs)
    np.testing.assert_array_equal(found, wanted)
