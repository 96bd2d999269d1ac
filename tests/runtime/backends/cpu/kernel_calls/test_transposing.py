"""Copies of tensors whose axes were permuted."""

import itertools

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import Guarded


def turning(dtype, *perm):
    axes = "NMKL"[: len(perm)]
    return NativePlan(
        parse(f"""program main
func main(%x: {dtype}[{", ".join(axes)}]) {{
  %0: {dtype}[{", ".join(axes[p] for p in perm)}] = transpose(%x) {{perm={perm}}}
  return %0
}}
""")
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "bool", "int64"])
def test_matrices_of_every_size(each_cpu, dtype, rng):
    plan = turning(dtype, 1, 0)
    for rows, columns in itertools.product((0, 1, 3, 15, 16, 17, 33, 70), (1, 2, 8, 16, 31, 130)):
        x = (
            Guarded((rng.normal(size=(rows, columns)) * 50).astype(dtype)).array
            if rows
            else np.zeros((0, columns), dtype)
        )
        np.testing.assert_array_equal(plan.run([x])[0], x.T)


@pytest.mark.parametrize("perm", [p for n in (3, 4) for p in itertools.permutations(range(n))])
def test_every_permutation(perm, rng):
    x = rng.normal(size=(3, 17, 18, 5)[: len(perm)]).astype("float32")
    np.testing.assert_array_equal(turning("float32", *perm).run([x])[0], x.transpose(perm))


def test_a_nest_reads_what_was_turned(rng):
    plan = NativePlan(
        parse("""program main
func main(%x: float32[N, M], %y: float32[M, N]) {
  %0: float32[M, N] = transpose(%x) {perm=(1, 0)}
  %1: float32[M, N] = add(%0, %y)
  %2: float32[M] = sum(%1) {axis=(1,), keepdim=false}
  return %1, %2, %0
}
""")
    )
    for shape in ((5, 40), (1, 3), (33, 2), (64, 64)):
        x, y = rng.normal(size=shape).astype("float32"), rng.normal(size=shape[::-1]).astype("float32")
        found, sums, turned = plan.run([x, y])
        np.testing.assert_array_equal(found, x.T + y)
        np.testing.assert_allclose(sums, (x.T + y).sum(1), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(turned, x.T)
