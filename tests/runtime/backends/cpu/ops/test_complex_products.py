"""Products of complex numbers natively, without Python."""

import numpy as np
import pytest

from dy2st.ir.parser import parse
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan


def program(line, results, shape="N, M", dtype="complex128"):
    kinds = ", ".join(f"%y{i}: {t}" for i, t in enumerate(results))
    names = ", ".join(f"%y{i}" for i in range(len(results)))
    return parse(f"program main\nfunc main(%x: {dtype}[{shape}]) {{\n  {kinds} = {line}\n  return {names}\n}}\n")


def check(made, x, exact=True):
    plan = NativePlan(made)
    assert not [call.name for call in plan.host_calls if not call.rare]
    with np.errstate(all="ignore"):
        for found, wanted in zip(plan.run([x]), compile_plan(made).run([x]), strict=True):
            assert found.dtype == wanted.dtype
            assert found.shape == wanted.shape
            if exact:
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-5 if x.itemsize == 8 else 1e-12)


def numbers(rng, shape, dtype="complex128"):
    """Return numbers of which many are equal, or have a part that is."""
    return (rng.integers(-2, 3, shape) + 1j * rng.integers(-2, 3, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(("axes", "left"), [("0,", "M"), ("1,", "N"), ("0, 1", "")])
def test_products(axes, left, dtype, rng):
    for keepdim in ("false", "true"):
        kept = left if keepdim == "false" else {"M": "1, M", "N": "N, 1", "": "1, 1"}[left]
        p = program(f"prod(%x) {{axis=({axes}), keepdim={keepdim}}}", [f"{dtype}[{kept}]"], dtype=dtype)
        for shape in ((0, 3), (3, 0), (1, 1), (9, 7)):
            check(p, numbers(rng, shape, dtype) + dtype_number(dtype), exact=False)


def dtype_number(dtype):
    return np.dtype(dtype).type(0.25 + 0.5j)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", ["false", "true"])
def test_running_products(axis, reverse, rng):
    p = program(f"cumprod(%x) {{axis={axis}, exclusive=false, reverse={reverse}}}", ["complex128[N, M]"])
    for shape in ((0, 3), (3, 0), (1, 1), (9, 7)):
        check(p, numbers(rng, shape) * (0.5 + 0.25j), exact=False)
    check(p, np.array([[np.inf, 1.0], [2.0, np.nan]]).astype("complex128"), exact=False)


def test_every_cpu_within_its_memory(each_cpu, rng, guarded):
    for shape in ((1, 1), (15, 17), (16, 16)):
        check(program("prod(%x) {axis=(0,), keepdim=false}", ["complex128[M]"]), numbers(rng, shape), exact=False)
