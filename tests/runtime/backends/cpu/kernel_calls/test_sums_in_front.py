"""Sums that undo a broadcast by axes in front, of which only the run tells whether others were repeated too."""

import numpy as np
import pytest

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.types import INT, TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.shapes import symbol

SYMBOLS = tuple(map(symbol, "pqrs"))


def program_of(dtype, rank, kept):
    """Return a Program that sums a tensor of `rank` axes to the `kept` extents that it is told."""
    b = Builder()
    x = b.argument(TensorType(dtype, SYMBOLS[:rank]))
    wanted = [b.argument(INT) for _ in range(kept)]
    b.block.results = b.operation(lookup("sum_to"), [x, *wanted], {"shape": (None,) * kept}).results
    return Program({"main": b.block})


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int64])
@pytest.mark.parametrize(
    ("shape", "kept"),
    [((3, 5), (5,)), ((17, 40), (40,)), ((2, 3, 7), (7,)), ((2, 3, 7), (3, 7)), ((4, 2, 3, 5), (3, 5)), ((6, 1), (1,)),
     ((0, 5), (5,)), ((5, 0), (0,)), ((300, 16), (16,))],
)  # fmt: skip
def test_axes_in_front_are_summed_natively(dtype, shape, kept):
    program = program_of(dtype, len(shape), len(kept))
    native = NativePlan(program)
    assert native.host_calls == []
    x = np.arange(np.prod(shape), dtype=dtype.numpy).reshape(shape) / 2
    x = x.astype(dtype.numpy)
    (got,), (want,) = native.run([x, *kept]), compile_plan(program).run([x, *kept])
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.shape == kept


@pytest.mark.parametrize(("shape", "kept"), [((3, 5), (1,)), ((2, 3, 7), (1, 7)), ((2, 3, 7), (3, 1))])
def test_axes_that_were_repeated_are_summed_too(shape, kept):
    program = program_of(dtypes.float32, len(shape), len(kept))
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    (got,), (want,) = NativePlan(program).run([x, *kept]), compile_plan(program).run([x, *kept])
    assert got.tolist() == want.tolist()
