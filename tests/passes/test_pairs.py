"""Complex numbers as pairs of floats: fires, stays away, values."""

import numpy as np
import pytest

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.ops.core.base import Sample
from dy2st.passes.lowering.complex_to_pairs import ComplexToPairs
from dy2st.passes.simplify.dce import RemoveDeadCode
from dy2st.runtime.interpreter.reference import evaluate
from tests.ops.test_registry import built
from tests.passes.texts import becomes, program, stays

PAIRS = ComplexToPairs()


def c(*shape):
    rng = np.random.default_rng(sum(shape))
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))


CASES = [
    ("add", (c(2, 3), c(2, 3)), {}),
    ("neg", (c(2, 3),), {}),
    ("index", (c(4, 3, 2),), {"spec": (("int", 1), ("new",), ("slice", None, None, 2))}),
    ("index", (c(4, 3), np.array([0, 2])), {"spec": (("tensor",),)}),
    ("index_set", (c(4, 3), c(3), 1), {"spec": (("int", "?"),)}),
    ("sum", (c(2, 3, 4),), {"axis": (0, 2), "keepdim": False}),
    ("sum", (c(2, 3),), {"axis": (0, 1), "keepdim": True}),
    ("mean", (c(2, 3),), {"axis": (1,), "keepdim": True}),
    ("cumsum", (c(2, 3),), {"axis": 1, "reverse": True}),
    ("concat", (c(2, 3), c(2, 1)), {"axis": 1}),
    ("stack", (c(2, 3), c(2, 3)), {"axis": 2}),
    ("stack", (c(), c()), {"axis": 0}),
    ("split", (c(2, 6), 2), {"sections": (3, None, 1), "axis": 1}),
    ("flip", (c(2, 3),), {"axes": (0, -1)}),
    ("roll", (c(3, 4), -3), {"shifts": (1, None), "axes": (0, 1)}),
    ("take", (c(2, 4), np.array([[0, 3]])), {"axis": 1}),
    ("broadcast", (c(1, 3), 4), {"shape": (2, None, 3)}),
    ("sum_to", (c(2, 4, 3), 1), {"shape": (None, 3)}),
    ("reshape", (c(2, 6),), {"shape": (3, 4)}),
    ("transpose", (c(2, 3, 4),), {"perm": (2, 0, 1)}),
    ("tril", (c(2, 3, 4),), {"diagonal": 1}),
    ("triu", (c(3, 2),), {"diagonal": -1}),
    ("take_along_axis", (c(2, 4), np.array([[0, 3], [-1, 2]])), {"axis": 1}),
    ("put_along_axis", (c(3, 2), np.array([[2, -3]]), c(1, 2)), {"axis": 0, "mode": "assign"}),
    ("put_along_axis", (c(3, 2), np.array([[2, 2], [2, 0]]), c(2, 2)), {"axis": 0, "mode": "add"}),
    ("full", (c(), 3), {"shape": (2, None)}),
    ("where", (np.array([True, False]), c(2), c(2)), {}),
    ("real", (c(2, 3),), {}),
    ("imag", (c(),), {}),
    ("complex", (c(2, 3).real, c(2, 3).imag), {}),
]


@pytest.mark.parametrize("symbolic", [False, True], ids=["known", "symbolic"])
@pytest.mark.parametrize(("name", "operands", "attributes"), CASES)
def test_values_and_types(name, operands, attributes, symbolic):
    made = Program({"main": built(lookup(name), Sample(operands, attributes), symbolic)})
    wanted, types = evaluate(made, list(operands)), [v.type for v in made.block.results]
    assert PAIRS.apply(made)
    verify(made)
    assert [v.type for v in made.block.results] == types
    for found, right in zip(evaluate(made, list(operands)), wanted, strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_pairs_go_from_one_operation_to_the_next():
    made = program("""%x: complex128[N, 3]
  %y: complex128[3, N] = transpose(%x) {perm=(1, 0)}
  %s: complex128[N] = sum(%y) {axis=(0,), keepdim=false}
  return %s""")
    assert PAIRS.apply(made)
    RemoveDeadCode().apply(made)
    names = [operation.name for operation in made.block.operations]
    assert names == ["expand_dims", "bitcast", "transpose", "sum", "bitcast", "squeeze"]


def test_real_programs_stay():
    stays(PAIRS, "%x: float64[N, 3]\n  %y: float64[3, N] = transpose(%x) {perm=(1, 0)}\n  return %y")


def test_other_operations_stay():
    stays(PAIRS, "%x: complex128[N]\n  %y: complex128[N] = exp(%x)\n  return %y")


def test_a_part_is_a_place_of_the_last_axis():
    becomes(
        PAIRS,
        "%x: complex64[N]\n  %y: float32[N] = imag(%x)\n  return %y",
        """%x: complex64[N]
  %e: complex64[N, 1] = expand_dims(%x) {axes=(1,)}
  %p: float32[N, 2] = bitcast(%e) {dtype=float32}
  %y: float32[N] = index(%p) {spec=(("slice", none, none, none), ("int", 1))}
  return %y""",
    )
