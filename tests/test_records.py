"""Records do what dataclasses do, for the part that is used here."""

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from dy2st.records import _FEW, field, record, replace


@record(frozen=True)
class Point:
    x: float
    y: float = 0.0


@record(frozen=True)
class Named(Point):
    name: str = field(default="", compare=False, repr=False)


@record
class Box:
    items: list[int] = field(default_factory=list)
    size: int = 1


@record(frozen=True, slots=True)
class Slotted:
    a: int
    b: tuple[int, ...] = ()


@record(frozen=True, eq=False)
class Itself:
    a: int


def test_fields_are_given_by_place_and_by_name():
    assert (Point(1.0, y=2.0).x, Point(1.0, y=2.0).y) == (1.0, 2.0)


def test_defaults_stand_for_what_is_not_given():
    assert (Point(3.0).y, Point.y, Box().size) == (0.0, 0.0, 1)


def test_each_record_has_a_default_of_its_own_where_a_factory_makes_it():
    first = Box()
    first.items.append(1)
    assert Box().items == []


def test_a_missing_argument_is_told_as_python_tells_it():
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_records_are_shown_as_dataclasses_are():
    Same = dataclasses.make_dataclass("Point", [("x", float), ("y", float)])
    assert repr(Point(1.0, 2.0)) == repr(Same(1.0, 2.0))


def test_a_record_that_holds_itself_can_be_shown():
    box = Box()
    box.items.append(box)  # type: ignore[arg-type]
    assert repr(box) == "Box(items=[...], size=1)"


def test_records_are_compared_by_type_and_values():
    assert Point(1.0) == Point(1.0)
    assert Point(1.0) != Point(2.0)
    assert Point(1.0) != Named(1.0)
    assert Itself(1) != Itself(1)


def test_a_field_that_is_the_same_object_is_equal():
    array = np.arange(3)
    one: Any = record(frozen=True)(type("One", (), {"__annotations__": {"value": object}}))
    assert one(array) == one(array)


def test_fields_that_are_not_compared_do_not_count():
    assert Named(1.0, 2.0, "a") == Named(1.0, 2.0, "b")
    assert hash(Named(1.0, 2.0, "a")) == hash(Named(1.0, 2.0, "b"))
    assert repr(Named(1.0, 2.0, "a")) == "Named(x=1.0, y=2.0)"


def test_frozen_records_have_a_hash_and_others_have_none():
    assert len({Point(1.0), Point(1.0, 0.0)}) == 1
    with pytest.raises(TypeError, match="unhashable type: 'Box'"):
        hash(Box())


def test_frozen_records_do_not_change():
    with pytest.raises(AttributeError, match="cannot assign to 'x': a Point does not change"):
        Point(1.0).x = 2.0  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot delete 'a': a Slotted does not change"):
        del Slotted(1).a  # type: ignore[misc]


def test_slots_leave_no_dict():
    assert not hasattr(Slotted(1), "__dict__")


@pytest.mark.parametrize("x", [Point(1.0), Named(1.0, 2.0, "n"), Box([1, 2]), Slotted(1, (2,))], ids=repr)
def test_records_can_be_pickled_and_copied(x):
    assert pickle.loads(pickle.dumps(x)) == x
    assert copy.deepcopy(x) == x
    assert copy.copy(x) == x


def test_replace_changes_what_is_named():
    assert replace(Named(1.0, 2.0, "n"), y=3.0).name == "n"
    assert replace(Point(1.0, 2.0), y=3.0) == Point(1.0, 3.0)


def test_what_a_class_defines_itself_stays():
    @record(frozen=True)
    class Loud:
        x: int

        def __repr__(self):
            return "LOUD"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    assert (repr(Loud(1)), Loud(1) == 3, hash(Loud(1))) == ("LOUD", True, 7)


def test_patterns_match_fields_by_place():
    match Point(1.0, 2.0):
        case Point(x, y):
            assert (x, y) == (1.0, 2.0)


def test_a_missing_argument_is_told_after_a_few_instances_too():
    pair = record(type("Pair", (), {"__annotations__": {"a": int, "b": int}}))
    for i in range(20):
        made = pair(i, b=-i)
        assert (made.a, made.b) == (i, -i)
        for wrong in ({"c": 1}, {"a": 1}, {}):
            with pytest.raises(TypeError, match=r"__init__\(\) (got|missing)"):
                pair(i, **wrong)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    "names", [(), ("a",), ("_1", "_0"), ("b", "_set", "x"), ("_3", "_2", "_1", "_0"), tuple("abcdefg")]
)
def test_records_of_any_number_of_fields_take_them_in_order(names, frozen):
    kind: Any = type("Kind", (), {"__annotations__": dict.fromkeys(names, int)} | dict.fromkeys(names[1:], 5))
    kind = record(frozen=frozen)(kind)
    for _ in range(20):
        made = kind(*range(len(names)))
        assert [getattr(made, name) for name in names] == list(range(len(names)))
        assert kind(**{name: i for i, name in enumerate(names)}) == made
        if names:
            assert [getattr(kind(1), name) for name in names] == [1, *[5] * (len(names) - 1)]
    assert kind.__init__.__qualname__ == "Kind.__init__"


def test_a_field_without_a_default_behind_one_with_is_refused():
    kind: Any = record(type("Kind", (), {"__annotations__": {"a": int, "b": int}, "a": 5}))
    for _ in range(_FEW):
        kind(1, 2)
    with pytest.raises(SyntaxError, match="follows"):
        kind(1, 2)


def test_an_init_that_was_deferred_is_written_for_the_class_that_defines_it():
    class Plain(Point):
        pass

    assert Plain(1.0, 2.0) != Point(1.0, 2.0)
    assert (Plain(1.0).x, "__init__" in vars(Plain)) == (1.0, False)
