"""Ops that make one tensor of a list: what they refuse, and tangents in which slots are unset."""

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float64, int64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import INT, ListType, TensorType

VECTORS = ListType(TensorType(float64, (3,)))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: lookup("list_stack").infer(ListType(INT)), TypeError, "stack needs a list of tensors, not list<int>"),
    (lambda: lookup("list_concat").infer(ListType(INT), axis=0), TypeError, "concat needs a list of tensors, not"),
    (lambda: lookup("list_concat").infer(VECTORS, axis=1), ValueError, "concat: axis 1 is out of range for tensors of"),
    (lambda: lookup("list_extents").infer(VECTORS, axis=2), ValueError, "extents: axis 2 is out of range for tensors"),
    (lambda: lookup("list_to_tensor").infer(VECTORS, dtype=int64), TypeError, "needs a list of numbers, not list<"),
    (lambda: lookup("list_append").infer(VECTORS, INT), TypeError, "cannot be joined"),
])  # fmt: skip
def test_operands_of_another_type_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_unset_and_missing_slots_are_zeros():
    slots = [(1, np.array([1.0])), (0, None)]
    extents, like = np.array([1, 2, 1]), np.ones(4)
    whole = lookup("list_concat_tangent").eval(np, slots, extents, like, axis=0)
    np.testing.assert_array_equal(whole, [1.0, 0.0, 0.0, 0.0])
    stacked = lookup("list_stack_tangent").eval(np, [(0, None), (1, np.ones(2))], np.ones((3, 2)))
    np.testing.assert_array_equal(stacked, [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])


def test_a_list_that_takes_other_extents_knows_less_of_its_elements():
    wide = lookup("list_append").infer(VECTORS, TensorType(float64, (4,)))
    assert wide == ListType(TensorType(float64, (None,)))
    assert lookup("list_set").infer(VECTORS, INT, TensorType(float64, (3,))) == VECTORS
