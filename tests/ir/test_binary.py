"""Programs as bytes: what is read back is the same, with types, names, attributes and places."""

import marshal

import numpy as np
import pytest

import dy2st as paddle
from dy2st.dtypes import float32
from dy2st.ir.binary import CannotPack, _coded, _decoded, _type, _type_data, pack, places_of, unpack
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_program
from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.location import Location
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Program
from dy2st.ir.type_text import parse_type
from dy2st.ir.types import TensorType
from dy2st.passes import optimise
from dy2st.shapes import symbol


def traced(function, *inputs):
    """Return the Program of a call."""
    static = paddle.jit.to_static(function, full_graph=True)
    static(*inputs)
    return static.concrete_program.main_program


def loop(x):
    items, total = [], paddle.zeros([2])
    while x.sum() < 50:
        x = x * 2 + paddle.to_tensor(np.arange(40.0, dtype="float32").reshape(20, 2))[:1]
        items.append(x)
        if x.mean() > 7:
            break
        assert x.max() < 1000, "too large"
        total = total + x.sum(0) * float("inf")
    return items[-1], total, len(items)


def test_a_program_comes_back_as_it_was():
    program = traced(loop, paddle.ones([3, 2]))
    (again,), notes = unpack(pack([program], (1, 2), places_of(program)), lambda: places_of(program))
    assert str(again) == str(program)
    assert fingerprint(again) == fingerprint(program)
    assert notes == (1, 2)
    assert all(a is b for a, b in zip(places_of(again), places_of(program), strict=True))


def test_a_program_that_was_derived_has_the_places_of_its_source():
    program = traced(loop, paddle.ones([3, 2]))
    derived = optimise(program)
    (again,), _ = unpack(pack([derived], (), places_of(program)), lambda: places_of(program))
    assert str(again) == str(derived)
    assert all(a is b for a, b in zip(places_of(again), places_of(derived), strict=True))


@pytest.mark.parametrize(
    "text",
    ["float32[2*N + 1, bcast(M, N), 4]", "int", "int(2*N)", "float", "bool", "list<variant<unset | float32[2]>>",
     "tuple<int, none>", 'variant<const("relu") | const(1) | float64[]>', "unset", "tuple<>"],
)  # fmt: skip
def test_types_come_back_as_they_were(text):
    kind = parse_type(text)
    assert _type(marshal.loads(marshal.dumps(_type_data(kind)))) == kind


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 2**70, 0.1, -0.0, 1j, "text", (1, (2.0, None)), [1, (float32,)], {"a": symbol("N") + 1, "b": ()},
     TensorType(float32, (symbol("N"),)), float32],
    ids=repr,
)  # fmt: skip
def test_attributes_come_back_as_they_were(value):
    again = _decoded(marshal.loads(marshal.dumps(_coded(value))))
    assert again == value
    assert repr(again) == repr(value)
    assert type(again) is type(value)


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.array(2, "int8"), np.zeros((0, 2), bool)])
def test_arrays_come_back_as_they_were(array):
    array.setflags(write=False)
    again = _decoded(marshal.loads(marshal.dumps(_coded(array))))
    assert (again.dtype, again.shape, again.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert not again.flags.writeable


@pytest.mark.parametrize("value", [object(), np.float64(1.0), np.array([object()]), (1, {2})], ids=["o", "f", "a", "s"])
def test_objects_cannot_be_packed(value):
    with pytest.raises(CannotPack, match="an attribute is"):
        _coded(value)


def program_of(op, place):
    b = Builder()
    x = b.argument(TensorType(float32, (2,)), "x")
    b.block.results = [b.emit(op, [x], {})]
    b.block.operations[-1].location = place
    return Program({"main": b.block})


def test_a_place_that_the_source_has_not_cannot_be_packed():
    program = program_of(REGISTRY["exp"], Location("a.py", 1))
    with pytest.raises(CannotPack, match="has a place of its own"):
        pack([program], (), [Location("b.py", 1)])


def test_an_op_from_elsewhere_cannot_be_packed(monkeypatch):
    program = program_of(REGISTRY["exp"], None)
    monkeypatch.setattr(type(REGISTRY["exp"]), "__module__", "users")
    with pytest.raises(CannotPack, match="exp is an op from elsewhere"):
        pack([program], (), [])


def test_data_of_another_form_are_refused():
    with pytest.raises(ValueError, match="no attribute: 7"):
        _decoded(7)
    with pytest.raises(ValueError, match="no type: 'int'"):
        _type("int")


def test_which_results_are_next_values_comes_back():
    b = Builder()
    x = b.argument(TensorType(float32, (3,)))
    b.block.results = [b.emit("neg", [x])]
    program = Program({"main": b.block})
    before = fingerprint(program)
    program.renewed = ((0, 0),)
    places = places_of(program)
    assert unpack(pack([program], (), places), places)[0][0].renewed == clone_program(program).renewed == ((0, 0),)
    assert fingerprint(program) != before
