"""Variants: a value is put under a tag that takes it."""

import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float32, int64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import BOOL, FLOAT, INT, NONE, UNSET, ScalarType, TensorType, VariantType

KIND = VariantType((UNSET, TensorType(float32, (2,)), NONE))


@pytest.mark.parametrize(("tag", "operands"), [(0, []), (1, [TensorType(float32, (2,))]), (2, [])])
def test_a_value_is_put_under_its_tag(tag, operands):
    assert lookup("variant_new").infer(*operands, type=KIND, tag=tag) == KIND


@pytest.mark.parametrize(("tag", "operands", "shown"), [
    (0, [TensorType(float32, (2,))], "float32[2]"),
    (1, [], "nothing"),
    (1, [TensorType(int64, (2,))], "int64[2]"),
    (2, [INT], "int"),
])  # fmt: skip
def test_a_value_of_another_type_is_refused(tag, operands, shown):
    with pytest.raises(TypeError) as caught:
        lookup("variant_new").infer(*operands, type=KIND, tag=tag)
    assert str(caught.value) == f"variant_new: alternative {tag} of {KIND} is not made of {shown}"


def test_a_tag_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="variant_new: there is no alternative 3 of"):
        lookup("variant_new").infer(type=KIND, tag=3)


@pytest.mark.parametrize(("a", "b", "kind"), [("bool", "bool", BOOL), ("bool", "int", INT), ("int", "float", FLOAT)])
@pytest.mark.parametrize("name", ["scalar_min", "scalar_max"])
def test_the_extreme_of_two_numbers_has_the_wider_kind(name, a, b, kind):
    assert lookup(name).infer(ScalarType(a), ScalarType(b)) == kind
