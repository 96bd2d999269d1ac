"""Nested structures: leaves, functions on leaves, other leaves in the same places."""

from collections import OrderedDict, namedtuple

import pytest

import dy2st as paddle
from dy2st import utils

Point = namedtuple("Point", "x y")
NEST = [1, (2, {"b": [4], "a": 3}), Point(5, 6)]


@pytest.mark.proves("utils.flatten")
def test_leaves_come_in_order_and_go_back():
    assert utils.flatten(NEST) == [1, 2, 3, 4, 5, 6]
    assert utils.flatten(7) == [7]
    assert utils.flatten([]) == []
    back = utils.pack_sequence_as(NEST, utils.flatten(NEST))
    assert back == NEST
    assert type(back[2]) is Point


@pytest.mark.proves("utils.map_structure")
def test_a_function_runs_on_all_leaves():
    assert utils.map_structure(lambda x: -x, NEST) == [-1, (-2, {"b": [-4], "a": -3}), Point(-5, -6)]
    assert utils.map_structure(lambda x, y: x * y, [2, (3,)], [5, (7,)]) == [10, (21,)]
    ordered = utils.map_structure(str, OrderedDict(z=1, a=2))
    assert type(ordered) is OrderedDict
    assert list(ordered.items()) == [("z", "1"), ("a", "2")]


def test_tensors_are_leaves_also_in_a_program():
    def double(state):
        return utils.map_structure(lambda t: t * 2, state)

    state = {"h": paddle.ones([2]), "c": (paddle.ones([1]),)}
    for run in (double, paddle.jit.to_static(double, full_graph=True)):
        out = run(state)
        assert out["h"].tolist() == [2.0, 2.0]
        assert out["c"][0].tolist() == [2.0]


def test_lists_and_tuples_are_alike_where_types_do_not_count():
    utils.assert_same_structure([1, 2], (1, 2), check_types=False)
    assert utils.is_sequence({})
    assert not utils.is_sequence("text")
    assert utils.unique_name.generate("n") != utils.unique_name.generate("n")


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: utils.map_structure(abs), ValueError, "needs at least one structure"),
        (lambda: utils.map_structure(max, [1], 2), ValueError, "a list of 1 where the other has a leaf"),
        (lambda: utils.map_structure(max, [1], [1, 2]), ValueError, "a list of 1 where the other has a list of 2"),
        (lambda: utils.map_structure(max, {"a": 1}, {"b": 1}), ValueError, r"a dict of \['a'\] where the other has"),
        (lambda: utils.map_structure(max, [1], (1,)), TypeError, "two structures differ: list and tuple"),
        (lambda: utils.pack_sequence_as([1, 2], [1]), ValueError, "1 leaves for a structure of 2"),
    ],
)
def test_structures_that_differ_are_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
