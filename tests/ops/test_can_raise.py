"""What an op knows of its own errors from types and attributes alone."""

import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import bool_, float32
from dy2st.ir.opdef import lookup
from dy2st.ir.types import INT, ScalarType, TensorType
from dy2st.shapes import symbol

N = symbol("N")
WHOLE = ("slice", None, None, None)


def t(*shape):
    return TensorType(float32, shape)


SAFE = [
    ("index", [t(4, 3)], {"spec": (("int", 3), WHOLE)}),
    ("index", [t(4, 3)], {"spec": (("int", -4), WHOLE)}),
    ("index", [t(N, 3), INT], {"spec": (("slice", "?", None, None), ("new",), ("int", 2))}),
    ("index_set", [t(N, 3), t(3)], {"spec": (WHOLE, WHOLE)}),
    ("index_set", [t(N, 3), t()], {"spec": (WHOLE, ("slice", 1, None, None))}),
    ("index_add", [t(N, 3), t(N)], {"spec": (WHOLE, ("int", 0))}),
    ("concat", [t(N, 3), t(2, 3)], {"axis": 0}),
    ("stack", [t(N, 3), t(N, 3)], {"axis": 0}),
    ("split", [t(N, 4)], {"sections": (1, 3), "axis": 1}),
    ("squeeze", [t(N, 1)], {"axes": (1,)}),
    ("max", [t(N, 3)], {"axis": (1,), "keepdim": False}),
    ("argmax", [t(2, 3)], {"axis": None, "keepdim": False}),
    ("item", [t(1, 1)], {}),
    ("scalar_mod", [INT, ScalarType("int", 2)], {}),
    ("reshape", [t(N, 4)], {"shape": (-1, 2)}),
    ("full", [t(), ScalarType("int", N)], {"shape": (None, 2)}),
]
DOUBTFUL = [
    ("masked_select", [t(N, 3), TensorType(bool_, (N, 3))], {}),
    ("full", [t(), INT], {"shape": (None, 2)}),
    ("index", [t(4, 3)], {"spec": (("int", 4), WHOLE)}),
    ("index", [t(N, 3)], {"spec": (("int", 0), WHOLE)}),
    ("index", [t(4, 3), INT], {"spec": (("int", "?"), WHOLE)}),
    ("index", [t(4, 3), INT], {"spec": (("slice", None, None, "?"), WHOLE)}),
    ("index", [t(4, 3), t(2)], {"spec": (("tensor",), WHOLE)}),
    ("index_set", [t(N, 3), t(N, 2)], {"spec": (WHOLE, WHOLE)}),
    ("index_set", [t(N, 3), t(2)], {"spec": (WHOLE, ("int", 0))}),
    ("concat", [t(N, 3), t(2, 3)], {"axis": 1}),
    ("stack", [t(N, 3), t(2, 3)], {"axis": 0}),
    ("split", [t(N, 4)], {"sections": (1, 3), "axis": 0}),
    ("split", [t(4), INT], {"sections": (None, 3), "axis": 0}),
    ("squeeze", [t(N, 1)], {"axes": (0,)}),
    ("max", [t(N, 3)], {"axis": (0,), "keepdim": False}),
    ("max", [t(0)], {"axis": (0,), "keepdim": False}),
    ("argmax", [t(N, 3)], {"axis": None, "keepdim": False}),
    ("item", [t(N)], {}),
    ("scalar_mod", [INT, INT], {}),
    ("reshape", [t(N, 3)], {"shape": (-1, 2)}),
]


@pytest.mark.parametrize(("name", "types", "attributes"), SAFE)
def test_what_cannot_go_wrong_cannot_raise(name, types, attributes):
    assert not lookup(name).can_raise(types, attributes)


@pytest.mark.parametrize(("name", "types", "attributes"), DOUBTFUL)
def test_what_may_go_wrong_can_raise(name, types, attributes):
    assert lookup(name).can_raise(types, attributes)
