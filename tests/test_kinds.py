"""What values are, as `isinstance`, `type` and `vars` say it."""

import functools
from collections import OrderedDict, deque

import pytest

from dy2st import kinds


class OwnList(list):
    """A list of the user's."""


class Says:
    """Something whose `__class__` is another one."""

    __class__ = dict


THINGS = [
    1, True, "x", None, [1], OwnList(), (1,), {"a": 1}, OrderedDict(), {1}, frozenset((1,)), deque((1,)), slice(1),
    (i for i in (1,)), iter([1]), int, type, functools.partial(len), Says(), len,
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "classes"),
    [
        (kinds.is_list, list),
        (kinds.is_tuple, tuple),
        (kinds.is_dict, dict),
        (kinds.is_deque, deque),
        (kinds.is_mutable_set, set),
        (kinds.is_int, int),
        (kinds.is_class, type),
        (kinds.is_generator, type(i for i in ())),
        (kinds.is_partial, functools.partial),
        (kinds.is_slice, slice),
        (kinds.is_sequence, (list, tuple)),
        (kinds.is_container, (list, tuple, dict)),
        (kinds.is_set, (set, frozenset)),
    ],
)
def test_checks_say_what_isinstance_says(check, classes):
    assert [check(x) for x in THINGS] == [isinstance(x, classes) for x in THINGS]


def test_iterators_are_told_by_their_methods():
    assert [kinds.is_iterator(x) for x in (iter([]), (i for i in ()), [], int)] == [True, True, False, False]
    assert kinds.type_of(THINGS[5]) is OwnList
    assert kinds.variables_of(kinds)["type_of"] is type
