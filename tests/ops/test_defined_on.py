"""Every op on every kind of dtype: right, and the same natively, or refused with one error in every tier."""

import numpy as np
import pytest

from dy2st.dtypes import dtype as dtype_of
from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import EVERY_KIND, REGISTRY
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.ir.verifier import InvalidProgram, verify
from dy2st.ops.core.base import Op
from dy2st.ops.core.elementwise_base import Ufunc
from dy2st.ops.core.rounded import evaluate, has_low
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.interpreter.planned import compile_plan
from tests.agreement import difference
from tests.ops.evaluate import as_list, emit, type_of

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
LAPACK_HAS_NO_FLOAT16 = {"inverse", "det", "slogdet", "solve", "cholesky", "eigh", "eig", "qr", "svd",
                         "adjugate", "adjugate_slope"}  # fmt: skip
SAME_ELEMENTS = {"bitcast"}
"""Ops whose result depends on how many bytes an element has, so that samples hold for one dtype."""


def has_floats(x):
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def samples(op):
    return [s for s in op.samples(np.random.default_rng(0)) if any(map(has_floats, s.operands))]


OPS = [name for name, op in sorted(REGISTRY.items()) if isinstance(op, Op) and not op.blocks and name != "call"]
OPS = [name for name in OPS if name not in SAME_ELEMENTS and samples(REGISTRY[name])]


def converted(x, dtype):
    """The floats of a sample in another dtype; the parts of complex numbers differ."""
    if not has_floats(x):
        return x
    if dtype.startswith("complex"):
        return np.asarray(x - 0.5j * np.roll(np.nan_to_num(x, posinf=9, neginf=-9), 1), dtype)
    if dtype == "bool" or "float" in dtype:
        return np.asarray(x > 0 if dtype == "bool" else x, dtype_of(dtype).numpy)
    whole = np.nan_to_num(x * 3, posinf=9, neginf=-9)
    return np.asarray(np.abs(whole) if dtype == "uint8" else whole, dtype)


def taken(op, operands):
    """Say whether all operands are of kinds that the op takes."""
    kinds = op.defined_on
    places = enumerate(operands)
    of = lambda i: kinds if isinstance(kinds, str) else kinds[min(i, len(kinds) - 1)]
    return all(of_array(x).kind in of(i) for i, x in places if isinstance(x, np.ndarray))


def append(b, op, operands, attributes):
    return emit(b, op, [b.argument(type_of(x)) for x in operands], attributes)


@pytest.mark.one_tier("compares both by itself, with tolerances for complex numbers")
@pytest.mark.parametrize("name", OPS)
def test_what_an_op_takes_is_right_and_the_same_natively(name):
    op, b, given, refused = REGISTRY[name], Builder(), [], set()
    for sample in samples(op)[:2]:
        for dtype in DTYPES:
            operands = [converted(x, dtype) for x in sample.operands]
            if not taken(op, operands) or (dtype == "float16" and name in LAPACK_HAS_NO_FLOAT16):
                continue
            try:
                append(Builder(), op, operands, sample.attributes)
            except (TypeError, ValueError):  # the type rule says more than kinds
                refused.add(dtype)
                continue
            results = append(b, op, operands, sample.attributes)
            b.block.results += results
            given += operands
            check_eval(op, operands, sample.attributes, results)
    assert given or len(refused) == len(DTYPES)
    program = Program({"main": b.block})
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    runs = [plan(program).run(list(copies)) for plan in (compile_plan, NativePlan, NativePlan)]
    assert difference(runs[1], runs[0], given, exact=False) == ""
    assert difference(runs[2], runs[0], given, exact=False) == ""


def check_eval(op, operands, attributes, results):
    """The results have the dtypes of the type rule; those of ufuncs are NumPy's."""
    with np.errstate(all="ignore"):
        found = as_list(evaluate(op, np, operands, attributes), results)
        for value, array in zip(results, found, strict=True):
            if isinstance(value.type, TensorType):
                assert array.dtype == value.type.dtype.numpy
        if not isinstance(op, Ufunc) or not hasattr(op, "function") or any(map(has_low, operands)):
            return
        if op.name not in ("round", "square", "isinf"):
            np.testing.assert_array_equal(found[0], getattr(np, op.function)(*operands).astype(found[0].dtype))


@pytest.mark.parametrize("name", [n for n in OPS if REGISTRY[n].defined_on is not EVERY_KIND])
def test_other_kinds_are_refused_by_eager_mode_and_when_a_program_is_built(name):
    op, count = REGISTRY[name], 0
    for sample in samples(op):
        for dtype in DTYPES:
            operands = [converted(x, dtype) for x in sample.operands]
            if taken(op, operands):
                continue
            count += 1
            tensors = [Tensor(x) if isinstance(x, np.ndarray) else x for x in operands]
            text = rf"^{name} is not defined on ([a-z0-9]+ and )?{dtype}( and [a-z0-9]+)? tensors$"
            with pytest.raises(TypeError, match=text):
                apply(op, *tensors, **sample.attributes)
            with pytest.raises(TypeError, match=text):
                append(Builder(), op, operands, sample.attributes)
    assert count


def test_a_program_that_is_read_is_refused_too():
    program = parse("program main\nfunc main(%x: complex64[N]) {\n  %y: complex64[N] = relu(%x)\n  return %y\n}\n")
    with pytest.raises(InvalidProgram, match="relu is not defined on complex64 tensors"):
        verify(program)
