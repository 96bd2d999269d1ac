"""Native code against the interpreter on every op: sizes around the widths of vectors, special values, layouts."""

import numpy as np
import pytest

from dy2st.ir.program import Program
from dy2st.ops.core.rounded import KIND
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference, is_exact
from tests.ops.test_registry import built, cases
from tests.runtime.backends.cpu.op_inputs import LAYOUTS, SIZES, as_dtype, chosen, inputs, laid

DTYPES = ("float64", "float32", "float16", "bfloat16")
EITHER_ZERO = frozenset(
    {"max", "min", "top", "maximum", "minimum", "fmax", "fmin", "sort", "relu", "clip", "nextafter", "max_pool",
     "matmul", "matmul_add", "quantized_matmul", "conv", "conv_input_grad", "conv_weight_grad", "attention",
     "attention_grad", "attention_mask_grad", "sum", "sum_to", "mean"}
)  # fmt: skip
"""Ops whose zeros may have either sign (tests/agreement.py)."""
NO_SPECIAL = {
    "attention_grad": "rows that a mask hides are not read",
    "attention_mask_grad": "rows that a mask hides are not read",
    "prod": "in the order of another layout, or over axes that are apart, a part may overflow before another is 0",
    **dict.fromkeys(("svd", "eig", "eigh"), "LAPACK's iterations never end where they meet an infinity"),
}
"""Ops that are not looked at with NaN and infinities, and why."""
LEFT_OUT = {
    "eigh": "samples that are made larger have equal eigenvalues, whose vectors are not unique",
    "complex": "there is none of 16 bits",
}
SHORT = {"attention_grad": "over a thousand equal keys the terms cancel"}
"""Ops that are not looked at with large sizes, and why."""
SHARE = 12
"""One in so many samples is in each run, the others are in slow tests."""


def outcome(plan, operands):
    try:
        with np.errstate(all="ignore"):
            return plan.run(operands)
    except Exception as error:
        return error


def other_zeros(found, wanted):
    """Say where a zero has another sign."""
    if isinstance(found, Exception):
        return ""
    for i, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(x, np.ndarray) and x.dtype.kind in ("f", KIND):
            other = (x == 0) & (np.signbit(x) != np.signbit(y))
            if other.any():
                return f"result {i}: a zero of another sign at {np.argwhere(other)[0].tolist()}"
    return ""


def check(op, sample, dtype, sizes=SIZES):
    """Compare all sizes, and all layouts for a few of them."""
    sizes = tuple(n for n in sizes if n < 1000) if op.name in SHORT else sizes
    if op.name in LEFT_OUT or (dtype != "float64" and not has_floats(sample)):
        return
    sample = as_dtype(sample, dtype)
    program = Program({"main": built(op, sample, True)})
    native, plan, exact = NativePlan(program), compile_plan(program), is_exact(program)
    for number, (name, operands) in enumerate(inputs(op, sample, sizes)):
        if name.endswith("special") and op.name in NO_SPECIAL:
            continue
        for layout in ("", *LAYOUTS) if number % 6 < 2 and op.name != "prod" else ("",):
            given = laid(operands, layout) if layout else operands
            found, wanted = outcome(native, given), outcome(plan, given)
            fault = difference(found, wanted, given, exact=exact)
            if not fault and op.name not in EITHER_ZERO:
                fault = other_zeros(found, wanted)
            assert fault == "", f"{dtype}, {name} {layout}: {fault}"


def has_floats(sample):
    return any(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in sample.operands)


CASES = cases()
IN_SHARE = [case for case in CASES if chosen(case.id, SHARE) == 0]


@pytest.mark.parametrize(("op", "sample"), IN_SHARE)
def test_a_share_of_the_samples(op, sample):
    check(op, sample, DTYPES[chosen(op.name, len(DTYPES))], (0, 1, 2, 7, 16, 33, 65, 1000))


TWO_LANES = [case for case in CASES if chosen(case.id, SHARE) == 1]


@pytest.mark.parametrize(("op", "sample"), TWO_LANES)
def test_a_share_of_the_samples_in_vectors_of_two(op, sample, monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", "sse")
    check(op, sample, "float64", (0, 1, 2, 3, 33))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(8))
def test_each_sample(shard):
    for case in CASES[shard::8]:
        check(*case.values, "float64")


@pytest.mark.soak
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("shard", range(8))
def test_each_sample_in_other_dtypes(shard, dtype):
    for case in CASES[shard::8]:
        check(*case.values, dtype)


@pytest.mark.parametrize("width", [8, 300, 1000])
@pytest.mark.parametrize("scale", [1, 300, 20000])
def test_the_layer_norm_of_large_float16(width, scale, rng):
    op, sample = next(case.values for case in CASES if case.id == "layer_norm-0")
    x = rng.normal(size=(3, width)) * scale / 3
    operands = [a.astype("float16") for a in (x, rng.normal(size=width), rng.normal(size=width))]
    program = Program({"main": built(op, as_dtype(sample, "float16"), True)})
    found, wanted = NativePlan(program).run(operands), compile_plan(program).run(operands)
    assert difference(found[:1], wanted[:1], operands, exact=False) == ""
    wide, scale_, bias = (a.astype("float64") for a in operands)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * scale_ + bias
    for made in (found[0], wanted[0]):
        np.testing.assert_allclose(made, exact, rtol=4e-3, atol=4e-3)
